"""What a run of a memory channel has met, by its record: tests ask that nothing was left out."""

from collections import Counter

import numpy as np

from calibration.memory.channel import Cycles, Outcome, Requests, RtlMemory
from calibration.memory.dram_rules import Kind, earliest, rules


def passes(outcome: Outcome) -> Cycles:
    """Shape (n,): how often others were served while the request was the oldest that waited."""
    served = outcome.served()
    result = np.zeros(len(served), dtype=np.int64)
    oldest = 0
    for request in np.argsort(served).tolist():
        # The queue's oldest when this one was served: the first that had not been.
        while served[oldest] < served[request]:
            oldest += 1
        result[oldest] += request != oldest
    return result


def coverage(memory: RtlMemory, requests: Requests, outcome: Outcome) -> Counter[str]:
    """How often a run met what a channel has to get right."""
    return (
        _rows(outcome)
        + _turnarounds(outcome)
        + _queues(memory, requests, outcome)
        + Counter({"activate that tFAW decides": _decided(memory, outcome, "tFAW")})
    )


def _decided(memory: RtlMemory, outcome: Outcome, rule: str) -> int:
    found = earliest(outcome.commands, rules(memory.timings))
    return sum(one.decided_by() == rule for one in found)


def _rows(outcome: Outcome) -> Counter[str]:
    """Hits, closed banks and conflicts, by the row commands since the bank was used last."""
    seen: Counter[str] = Counter()
    since: dict[tuple[int, int], str] = {}
    for command in outcome.commands:
        where = (command.group, command.bank)
        if command.kind is Kind.PRECHARGE:
            since[where] = "conflict"
        elif command.kind is Kind.PRECHARGE_ALL:
            since.clear()
        elif command.kind is Kind.ACTIVATE:
            since.setdefault(where, "closed")
            if since[where] == "hit":
                since[where] = "closed"
        elif command.kind in (Kind.READ, Kind.WRITE):
            seen[since[where]] += 1
            since[where] = "hit"
    return seen


def _turnarounds(outcome: Outcome) -> Counter[str]:
    columns = [c for c in outcome.commands if c.kind in (Kind.READ, Kind.WRITE)]
    seen: Counter[str] = Counter()
    for one, two in zip(columns, columns[1:], strict=False):
        if one.kind is not two.kind:
            group = "same" if one.group == two.group else "other"
            seen[f"{one.kind.name} to {two.kind.name}, {group} group"] += 1
    return seen


def _queues(memory: RtlMemory, requests: Requests, outcome: Outcome) -> Counter[str]:
    served, taken = outcome.served(), outcome.taken
    seen: Counter[str] = Counter()
    for command in outcome.commands:
        waiting = int(((taken < command.cycle) & (served >= command.cycle)).sum())
        assert waiting <= memory.queue_depth
        seen["queue full"] += waiting == memory.queue_depth
        seen["refresh, queue full"] += (
            command.kind is Kind.REFRESH and waiting == memory.queue_depth
        )
    seen["request refused"] = int((taken > outcome.offered).sum())
    seen["response refused"] = int((outcome.answered > outcome.appeared).sum())
    last: dict[int, int] = {}
    for number, address in enumerate(requests.address.tolist()):
        before = last.get(address)
        if before is not None and served[before] > taken[number]:
            kinds = [("read", "write")[requests.write[n]] for n in (number, before)]
            seen[f"{kinds[0]} waits for a {kinds[1]} of its address"] += 1
        last[address] = number
    seen["oldest becomes urgent"] = int((passes(outcome) >= memory.pass_limit).sum())
    return seen
