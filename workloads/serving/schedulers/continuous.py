"""Continuous batching."""

from workloads.serving.schedulers.base import Chunk, Plan, Queue


class Continuous:
    """Iteration-level scheduling as in Orca (OSDI 2022, section 3.1).

    Every waiting request that can be admitted joins the running batch at the next iteration with
    its whole prompt.
    """

    keeps_prompts = False

    def plan(self, queue: Queue) -> Plan:
        """Whole prompts of all requests that can be admitted."""
        chunks = []
        while (request := queue.admit()) is not None:
            chunks.append(Chunk(request, request.left_to_prefill))
        return Plan(chunks)
