"""Tokens over time, in a bounded number of equal bins."""

import numpy as np

from tlm.compiled import compiled
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.cost import Int64s

_BINS = 256
_FIRST_BIN_PS = 10**9  # 1 ms; doubled whenever the bins are full
#: Rows that are counted at a time, which is faster than one by one.
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

    def taken(self) -> Int64s:
        """The rows, shape (rows, 4), which are no more."""
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 4)
        self.rows.clear()
        return rows


class Timeline:
    """Counts of tokens by when they were computed or emitted."""

    def __init__(self) -> None:
        self._bin_ps = _FIRST_BIN_PS
        self._prompt, self._output = _Counts(), _Counts()
        self._last_ps = 0

    def prompt(self, now_ps: int, tokens: int) -> None:
        """Prompt tokens whose computation is complete."""
        self._add(self._prompt, (now_ps, 0, 1, tokens))

    def output(self, now_ps: int, tokens: int) -> None:
        """Output tokens emitted."""
        self._add(self._output, (now_ps, 0, 1, tokens))

    def outputs(self, now_ps: int, every_ps: int, times: int, tokens: int) -> None:
        """As many output tokens emitted after every interval from now on, so many times."""
        self._add(self._output, (now_ps, every_ps, times, tokens))

    def logged(self, prompts: Int64s, outputs: Int64s) -> None:
        """Both kinds, as `outputs` has them: shape (rows, 4)."""
        self._count(self._prompt, prompts)
        self._count(self._output, outputs)

    def summary(self) -> dict[str, object]:
        """``bin_s`` and the tokens a second in each bin, up to the last with any."""
        for kind in (self._prompt, self._output):
            self._count(kind, kind.taken())
        end = self._last_ps // self._bin_ps + 1
        bin_s = self._bin_ps / PS_PER_S
        return {
            "bin_s": bin_s,
            "prompt_tok_s": [tokens / bin_s for tokens in self._prompt.bins[:end].tolist()],
            "output_tok_s": [tokens / bin_s for tokens in self._output.bins[:end].tolist()],
        }

    def _add(self, kind: _Counts, row: tuple[int, int, int, int]) -> None:
        kind.rows.append(row)
        if len(kind.rows) > _TO_COUNT:
            self._count(kind, kind.taken())

    def _count(self, kind: _Counts, rows: Int64s) -> None:
        """Count rows in bins wide enough for their end."""
        begin, every, times, _ = rows.T
        self._last_ps = max(self._last_ps, int((begin + every * times).max(initial=0)))
        while self._last_ps // self._bin_ps >= _BINS:
            self._bin_ps *= 2
            for each in (self._prompt, self._output):
                pairs = each.bins.reshape(-1, 2).sum(axis=1)
                each.bins = np.concatenate([pairs, np.zeros_like(pairs)])
        _add_to_bins(kind.bins, self._bin_ps, rows)


@compiled
def _add_to_bins(bins: Int64s, bin_ps: int, rows: Int64s) -> None:
    """Add tokens to the bins in which they are emitted."""
    for row in range(len(rows)):
        when_ps = rows[row, 0]
        for _ in range(rows[row, 2]):
            when_ps += rows[row, 1]
            bins[when_ps // bin_ps] += rows[row, 3]
