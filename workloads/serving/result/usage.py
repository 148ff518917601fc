"""What the iterations of a pool computed, took and read."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain

from workloads.models import SlidingWindow
from workloads.serving.price.cost import Batch, DecodeCosts, IterationCost, Work, work_of

PJ_PER_J = 1e12  # energy is added up in whole picojoules, so that its order does not matter
_TO_COUNT = 1 << 8


class Usage:
    """Sums over iterations, which are counted many at a time: that is faster than one by one.

    Args:
        layers: Layers of the model.
        window: What some of them see only.

    Attributes:
        iterations: How many there were, as of the last ``counted``, like the others.
        busy_ps: Time they took.
        decoded: Decoding requests of each.
        decode_iterations: How many had any.
        energy_pj: Dynamic energy; None where that of an iteration is not known.
        expert_bytes: Bytes of expert weights read.
        work: All that was computed.
        made_of: What the iterations were made of, and how often.
    """

    def __init__(self, layers: int, window: SlidingWindow | None = None) -> None:
        self._layers = layers
        self._window = window
        self._new: list[tuple[Batch, IterationCost, int]] = []
        self._new_stretches: list[tuple[Batch, DecodeCosts, Sequence[int], int]] = []
        self.iterations = self.busy_ps = self.decoded = self.decode_iterations = 0
        self.energy_pj: int | None = 0
        self.expert_bytes = 0
        self.work = Work(0, 0, 0)
        self.made_of: Counter[Hashable] = Counter()

    def iteration(self, batch: Batch, cost: IterationCost, duration_ps: int) -> None:
        """An iteration."""
        self._new.append((batch, cost, duration_ps))
        if len(self._new) > _TO_COUNT:
            self.counted()

    def stretch(
        self, batch: Batch, costs: DecodeCosts, times: Sequence[int], duration_ps: int
    ) -> None:
        """Iterations from ``batch`` on, of each run that ``costs`` are of as many as ``times``."""
        self._new_stretches.append((batch, costs, times, duration_ps))
        if len(self._new_stretches) > _TO_COUNT:
            self.counted()

    def counted(self) -> "Usage":
        """This, with all that it was told of counted."""
        if self._new:
            self._count()
            self._new.clear()
        for stretch in self._new_stretches:
            self._count_stretch(*stretch)
        self._new_stretches.clear()
        return self

    def _count(self) -> None:
        batches, costs, durations_ps = zip(*self._new, strict=True)
        seconds, joules, expert_bytes, made_of = zip(*costs, strict=True)
        decoding = [batch.decode_sequences for batch in batches]
        self._add(
            len(batches),
            len(batches) - decoding.count(0),
            sum(decoding),
            sum(durations_ps),
            work_of(batches, self._layers, self._window),
        )
        self.expert_bytes += sum(map(round, expert_bytes))
        self.made_of.update(chain.from_iterable(made_of))
        self._spend(joules, [1] * len(seconds))

    def _count_stretch(
        self, batch: Batch, costs: DecodeCosts, times: Sequence[int], duration_ps: int
    ) -> None:
        steps, sequences = sum(times), batch.decode_sequences
        self._add(steps, steps, sequences * steps, duration_ps, self._stretch_work(batch, steps))
        self.expert_bytes += round(costs.expert_bytes) * steps
        for parts, count in zip(costs.made_of, times, strict=False):
            for part in parts:
                self.made_of[part] += count
        self._spend(costs.energy_j, times)

    def _spend(self, joules: Sequence[float | None], times: Sequence[int]) -> None:
        """Energy of iterations, of as many as ``times`` each."""
        for each, count in zip(joules, times, strict=False):
            if each is None or self.energy_pj is None:
                self.energy_pj = None
                return
            self.energy_pj += round(each * PJ_PER_J) * count

    def _stretch_work(self, batch: Batch, steps: int) -> Work:
        """Work of iterations that only decode, each with the tokens of the last in the cache."""
        layers, window = self._layers, self._window
        windowed = 0 if window is None else window.count(range(layers))
        pairs = _growing_pairs(batch, steps) * (layers - windowed)
        if window is not None:
            pairs += _windowed_pairs(batch, steps, window.tokens) * windowed
        return Work(batch.decode_tokens * steps * layers, pairs, batch.logit_rows * steps)

    def _add(
        self, iterations: int, decode: int, decoded: int, duration_ps: int, work: Work
    ) -> None:
        self.iterations += iterations
        self.decode_iterations += decode
        self.decoded += decoded
        self.busy_ps += duration_ps
        self.work = Work(*map(sum, zip(self.work, work, strict=True)))


def _growing_pairs(batch: Batch, steps: int) -> int:
    """Pairs of a layer in iterations each of which has the last one's tokens in its cache."""
    grown = batch.decode_tokens * batch.decode_width * (steps * (steps - 1) // 2)
    return batch.decode_pairs * steps + grown


def _windowed_pairs(batch: Batch, steps: int, window: int) -> int:
    """The same in a layer with a window: they grow until the windows are full."""
    most = batch.decode_sequences * window
    room = most - batch.decode_context_tokens
    growing = min(steps, max(0, -(-room // batch.decode_tokens)))
    full = batch._replace(decode_context_tokens=most).decode_pairs
    return _growing_pairs(batch, growing) + full * (steps - growing)
