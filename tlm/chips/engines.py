"""Matrix engines as a profile's tables: what the models make of each."""

from abc import abstractmethod
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from tlm.compute.base import Compute
from tlm.compute.redmule import RedMule
from tlm.compute.systolic import Dataflow
from tlm.compute.tile_engines import MatrixEngine, rtl_engine_timing
from tlm.compute.tiled_systolic import TiledSystolic, TileTurn
from tlm.compute.vector_mac import VectorMac
from tlm.compute.vector_product import Faster, VectorProduct
from tlm.compute.vector_unit import VectorUnit
from tlm.tables import Count, Duration, Figure, Natural, Table
from tlm.tiles.layout import SUM_BITS, WORD_BITS
from tlm.tiles.timing import TileTiming, rtl_tile


class Grains(NamedTuple):
    """Sizes of blocks that fill an engine: C[rows, columns] = A[rows, inner] B[inner, columns]."""

    rows: int
    columns: int
    inner: int


class _EngineTable(Table):
    """A matrix engine; those of other chips than the project's own leave most as it is here."""

    @abstractmethod
    def compute(self) -> Compute:
        """Shape-aware model of it."""

    def products(self, flop_per_cycle: int | None, elements_per_cycle: float | None) -> Compute:
        """Model of all in a tile that multiplies matrices.

        Args:
            flop_per_cycle: Of the vector engine beside it, if that has a figure.
            elements_per_cycle: What local memory gives, if that has one.
        """
        return self.compute()

    def vector_unit(self, flop_per_cycle: int | None) -> VectorUnit | None:
        """The vector engine beside it, which may be given: a multiply-add counts as two."""
        return VectorUnit(flop_per_cycle // 2) if flop_per_cycle else None

    def own_tile(self, banks: int, words: int) -> TileTiming | None:
        """What a tile of so many banks and words costs around it; None of other chips than ours."""
        return None

    @property
    def grains(self) -> Grains | None:
        """What fills it; None if there are no closed forms of its chips."""
        return None


class SystolicEngine(_EngineTable):
    """The project's own tile around its systolic array; its cycles come from the calibration."""

    kind: Literal["systolic"]
    rows: Count
    cols: Count
    dataflow: Dataflow

    def compute(self) -> MatrixEngine:
        """See `_EngineTable`."""
        return MatrixEngine(self.rows, self.dataflow, rtl_engine_timing())

    def vector_unit(self, flop_per_cycle: int | None) -> VectorUnit:
        """See `_EngineTable`."""
        return VectorUnit(WORD_BITS // SUM_BITS, rtl_engine_timing().vector_cycles)

    def own_tile(self, banks: int, words: int) -> TileTiming:
        """See `_EngineTable`."""
        return rtl_tile(self.rows, banks, words)


class RedMulEEngine(_EngineTable):
    """The RedMulE matrix engine: ``height`` x ``width`` compute elements in its paper's naming."""

    kind: Literal["redmule"]
    height: Count
    width: Count
    pipeline_registers: Count
    setup_cycles: Count
    preload_cycles: Count

    def compute(self) -> RedMule:
        """See `_EngineTable`."""
        return RedMule(**self.model_dump(exclude={"kind"}))

    @property
    def grains(self) -> Grains:
        """See `_EngineTable`."""
        return Grains(self.width, self.height * (self.pipeline_registers + 1), self.height)


class VectorMacEngine(_EngineTable):
    """A scalar or SIMD core that multiplies and accumulates in software."""

    kind: Literal["vector-mac"]
    macs_per_cycle: Figure
    cycles_per_mac: Figure
    vector_cycles: Duration = 0.0
    inner_cycles: Duration = 0.0

    def compute(self) -> VectorMac:
        """See `_EngineTable`."""
        return VectorMac(**self.model_dump(exclude={"kind"}))

    def vector_unit(self, flop_per_cycle: int | None) -> VectorUnit:
        """See `_EngineTable`: the core's own lanes."""
        return super().vector_unit(flop_per_cycle) or VectorUnit(int(self.macs_per_cycle))


class TiledSystolicEngine(_EngineTable):
    """A foreign weight-stationary systolic array (`tlm.compute.tiled_systolic`).

    ``tiles`` says what a tile of weights shares with the next one. ``lane_alus`` are the units of a
    lane of the vector engine, which then has the products that it is faster at; 0: the array has
    all.
    """

    kind: Literal["tiled-systolic"]
    rows: Count
    cols: Count
    tiles: TileTurn = "overlapped"
    lane_alus: Natural = 0

    def compute(self) -> TiledSystolic:
        """See `_EngineTable`."""
        return TiledSystolic(self.rows, self.cols, self.tiles)

    def products(self, flop_per_cycle: int | None, elements_per_cycle: float | None) -> Compute:
        """See `_EngineTable`: the array, or the vector engine where that is faster."""
        lanes = self.lanes(flop_per_cycle)
        if not lanes:
            return self.compute()
        return Faster(self.compute(), VectorProduct(lanes, self.lane_alus, elements_per_cycle))

    def lanes(self, flop_per_cycle: int | None) -> int:
        """Lanes of the vector engine that multiply matrices; 0 if it does not."""
        return (flop_per_cycle or 0) // (2 * self.lane_alus) if self.lane_alus else 0

    @property
    def grains(self) -> Grains:
        """See `_EngineTable`."""
        return Grains(self.rows, self.cols, self.rows)


MatrixTable = Annotated[
    SystolicEngine | RedMulEEngine | VectorMacEngine | TiledSystolicEngine,
    Field(discriminator="kind"),
]
