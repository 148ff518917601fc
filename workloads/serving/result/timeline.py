"""Tokens over time, in a bounded number of equal bins."""

import numpy as np

from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.cost import Int64s

_BINS = 256
_FIRST_BIN_PS = 10**9  # 1 ms; doubled whenever the bins are full
#: Emissions that are counted at a time, which is faster than one by one.
_TO_COUNT = 1 << 12


class _Counts:
    """Tokens of one kind: counted in bins, and still to be counted.

    Attributes:
        bins: Tokens in each bin.
        rows: When emissions begin, what lies between two, how many there are, tokens of each.
    """

    def __init__(self) -> None:
        self.bins: Int64s = np.zeros(_BINS, dtype=np.int64)
        self.rows: list[tuple[int, int, int, int]] = []

    def times(self) -> tuple[Int64s, Int64s]:
        """When tokens of the rows were emitted, and how many; the rows are no more."""
        if not self.rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        begin, every, times, tokens = np.array(self.rows, dtype=np.int64).T
        self.rows.clear()
        before = np.repeat(np.cumsum(times) - times, times)
        number = np.arange(1, len(before) + 1) - before
        return np.repeat(begin, times) + np.repeat(every, times) * number, np.repeat(tokens, times)


class Timeline:
    """Counts of tokens by when they were computed or emitted."""

    def __init__(self) -> None:
        self._bin_ps = _FIRST_BIN_PS
        self._prompt, self._output = _Counts(), _Counts()
        self._last_ps = 0
        self._to_count = 0

    def prompt(self, now_ps: int, tokens: int) -> None:
        """Prompt tokens whose computation is complete."""
        self._prompt.rows.append((now_ps, 0, 1, tokens))
        self._add(1)

    def output(self, now_ps: int, tokens: int) -> None:
        """Output tokens emitted."""
        self._output.rows.append((now_ps, 0, 1, tokens))
        self._add(1)

    def outputs(self, now_ps: int, every_ps: int, times: int, tokens: int) -> None:
        """As many output tokens emitted after every interval from now on, so many times."""
        self._output.rows.append((now_ps, every_ps, times, tokens))
        self._add(times)

    def summary(self) -> dict[str, object]:
        """``bin_s`` and the tokens a second in each bin, up to the last with any."""
        self._count()
        end = self._last_ps // self._bin_ps + 1
        bin_s = self._bin_ps / PS_PER_S
        return {
            "bin_s": bin_s,
            "prompt_tok_s": [tokens / bin_s for tokens in self._prompt.bins[:end].tolist()],
            "output_tok_s": [tokens / bin_s for tokens in self._output.bins[:end].tolist()],
        }

    def _add(self, emissions: int) -> None:
        self._to_count += emissions
        if self._to_count > _TO_COUNT:
            self._count()

    def _count(self) -> None:
        """Count what is to be counted, in bins wide enough for its end."""
        self._to_count = 0
        kinds = self._prompt, self._output
        emitted = [kind.times() for kind in kinds]
        self._last_ps = max(self._last_ps, *(int(when.max(initial=0)) for when, _ in emitted))
        while self._last_ps // self._bin_ps >= _BINS:
            self._bin_ps *= 2
            for kind in kinds:
                pairs = kind.bins.reshape(-1, 2).sum(axis=1)
                kind.bins = np.concatenate([pairs, np.zeros_like(pairs)])
        for kind, (when, tokens) in zip(kinds, emitted, strict=True):
            np.add.at(kind.bins, when // self._bin_ps, tokens)
