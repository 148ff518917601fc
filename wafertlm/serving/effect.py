"""What traits of custom routers that prices do not model do to times, as it was measured."""

from typing import NamedTuple


class OwnEffect(NamedTuple):
    """What was measured.

    Attributes:
        pct: By how much prices are off more than those of routers without the traits, in per cent.
        cases: Of how many cases that is the worst.
        kernels: Of how many kernels.
        missing: Kernels that could not be measured: of them the worst of the others counts.
    """

    pct: float
    cases: int
    kernels: int
    missing: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        """By how much the error of prices grows."""
        return 1 + self.pct / 100

    @property
    def is_known(self) -> bool:
        """Whether anything was measured that is needed, and leaves a time at all."""
        return self.pct < 100 and (self.kernels > 0 or not self.missing)

    @property
    def told(self) -> str:
        """In words, as an end of a sentence on the routers."""
        if self.pct >= 100:
            return f"it changes small cases by up to {self.pct:.3g} %, which bounds no time"
        if not self.is_known:
            return f"no case of {', '.join(self.missing)} shows what that does"
        told = f"it changes {self.cases} small cases of {self.kernels} kernels by up to "
        told += f"{self.pct:.2g} %, which is in the error"
        if self.missing:
            told += f", and counts for {', '.join(self.missing)}, which has too few cases"
        return told
