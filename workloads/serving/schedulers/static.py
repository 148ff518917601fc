"""Static batching."""

from workloads.serving.schedulers.base import Plan, Queue
from workloads.serving.schedulers.continuous import Continuous


class Static(Continuous):
    """Whole batches one after the other, as before iteration-level scheduling.

    A batch is what waits when the one before has ended, up to the most that may run. Its prompts
    are computed together. A request that ends early leaves its place empty; it is not padded.
    """

    def plan(self, queue: Queue) -> Plan:
        """All prompts of a new batch, once nobody decodes."""
        return Plan() if queue.decoding else super().plan(queue)
