"""Tokens over time, in a bounded number of equal bins."""

from workloads.serving.load.traces import PS_PER_S

_BINS = 256
_FIRST_BIN_PS = 10**9  # 1 ms; doubled whenever the bins are full


class Timeline:
    """Counts of tokens by when they were computed or emitted."""

    def __init__(self) -> None:
        self._bin_ps = _FIRST_BIN_PS
        self._prompt = [0] * _BINS
        self._output = [0] * _BINS
        self._last_bin = 0

    def prompt(self, now_ps: int, tokens: int) -> None:
        """Prompt tokens whose computation is complete."""
        place = self._bin(now_ps)  # first: it may fold the counts
        self._prompt[place] += tokens

    def output(self, now_ps: int, tokens: int) -> None:
        """Output tokens emitted."""
        place = self._bin(now_ps)  # first: it may fold the counts
        self._output[place] += tokens

    def outputs(self, now_ps: int, every_ps: int, times: int, tokens: int) -> None:
        """As many output tokens emitted after every interval from now on, so many times."""
        last = self._bin(now_ps + every_ps * times)
        before = 0
        for place in range((now_ps + every_ps) // self._bin_ps, last):
            upto = ((place + 1) * self._bin_ps - 1 - now_ps) // every_ps
            self._output[place] += tokens * (upto - before)
            before = upto
        self._output[last] += tokens * (times - before)

    def summary(self) -> dict[str, object]:
        """``bin_s`` and the tokens a second in each bin, up to the last with any."""
        end = self._last_bin + 1
        bin_s = self._bin_ps / PS_PER_S
        return {
            "bin_s": bin_s,
            "prompt_tok_s": [tokens / bin_s for tokens in self._prompt[:end]],
            "output_tok_s": [tokens / bin_s for tokens in self._output[:end]],
        }

    def _bin(self, now_ps: int) -> int:
        place = now_ps // self._bin_ps
        if place <= self._last_bin:
            return place
        while place >= _BINS:
            self._prompt = _pairs(self._prompt)
            self._output = _pairs(self._output)
            self._bin_ps *= 2
            place = now_ps // self._bin_ps
        self._last_bin = place
        return place


def _pairs(counts: list[int]) -> list[int]:
    return [a + b for a, b in zip(counts[::2], counts[1::2], strict=True)] + [0] * (_BINS // 2)
