"""What the cycles of a kernel's run went into."""

from typing import NamedTuple, Self

from tlm.engines.outcome import Outcome


class Spent(NamedTuple):
    """What the tile that ends last did, in cycles.

    Attributes:
        all: From the start to its end.
        matrix: In which its matrix engine worked.
        computed: In which its matrix or its vector engine did.
        for_memory: By which the run would be shorter if off-chip memory cost nothing.
    """

    all: int
    matrix: int
    computed: int
    for_memory: int = 0

    @classmethod
    def of(cls, outcome: Outcome, for_memory: int = 0) -> Self:
        """As an engine has it."""
        last, cycles = outcome.last_tile, outcome.cycles
        matrix, computed = outcome.matrix_busy_cycles[last], outcome.compute_busy_cycles[last]
        # Level `lt` may have missed that both worked, but none works for longer than the run.
        return cls(cycles, int(matrix), min(int(computed), cycles), for_memory)

    @classmethod
    def in_closed_form(cls, cycles: int, matrix: int, vector: int, without_memory: int) -> Self:
        """As a closed form has it, which does not say when engines work.

        So they work as little at the same time as can be.

        Args:
            cycles: Of the run.
            matrix: Of a tile's products.
            vector: Of a tile's vector passes.
            without_memory: Of the run if off-chip memory cost nothing.
        """
        for_memory = max(0, cycles - without_memory)
        return cls(cycles, matrix, min(matrix + vector, cycles - for_memory), for_memory)

    @property
    def memory(self) -> int:
        """Cycles of waiting for memory: as far as the run would be shorter without."""
        return min(max(self.for_memory, 0), self.all - self.computed)

    @property
    def communication(self) -> int:
        """Cycles of other waiting."""
        return self.all - self.computed - self.memory
