"""What a kernel's cycles went into, held against the spans of the work that was done."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from tests.tlm.programs import TIMING, program_of, run_mesh, tile
from tlm.engines.lt import run_lt
from tlm.interconnect.packets import TileSet
from tlm.program import Engine, Work
from tlm.program.operations import COMPUTING
from tlm.trace import EngineSpan
from wafertlm.kernel import Execution, KernelOptions, run_kernel


class Spans:
    """A recorder that keeps when the computing engines of each tile work."""

    region = TileSet(range(4), range(4))

    def __init__(self) -> None:
        self.spans: dict[Any, list[tuple[int, int]]] = defaultdict(list)

    def operation(self, span: EngineSpan) -> None:
        if span.engine in COMPUTING:
            self.spans[span.tile].append((span.start_cycle, span.end_cycle))

    def transfer(self, *_: Any) -> None:
        pass

    def computed(self, tile: Any) -> int:
        """Cycles in which some engine works."""
        return len({cycle for span in self.spans[tile] for cycle in range(*span)})


def test_cycles_in_which_both_engines_work_count_once() -> None:
    operations = [
        Work(Engine.MATRIX, tile(0), 10, gives=("a",)),
        Work(Engine.VECTOR, tile(0), 4),
        Work(Engine.VECTOR, tile(0), 5, takes=("a",), gives=("b",)),  # 10 to 15
        Work(Engine.MATRIX, tile(0), np.array([[2]])),  # 10 to 12
        Work(Engine.CONTROL, tile(0), 6, takes=("b",), gives=("c",)),  # 15 to 21
        Work(Engine.MATRIX, tile(0), 3, takes=("c",)),  # 21 to 24
    ]
    program = program_of(1, 1, operations, a=(0, 1), b=(0, 1), c=(0, 1))
    for outcome in (run_mesh(program, TIMING), run_lt(program, TIMING)):
        assert outcome.compute_busy_cycles.tolist() == [[15 + 3]]
        assert outcome.matrix_busy_cycles.tolist() == [[15]]


@pytest.mark.parametrize(
    ("level", "name", "chip", "shape"),
    [
        *(
            (level, name, "rtl-4x4", shape)
            for level in ("at", "lt")
            for name, shape in [
                ("softmax", "32,64"),
                ("flash-attention-3", "1,4,4,64,64,16,16"),
                ("flat-attention", "1,4,4,64,64,16,16"),
            ]
        ),
        ("lt", "flat-attention", "flat32", "1,8,8,512,512,64,64"),  # it has no router for `at`
    ],
)
def test_communication_is_when_no_engine_computes(
    level: str, name: str, chip: str, shape: str
) -> None:
    dtype = "int8" if chip == "rtl-4x4" else "fp16"
    spans = Spans()
    options = KernelOptions(
        kernel=name, chip=chip, grid="4x4", shape=shape, dtype=dtype, level=level, allow_stale=True
    )
    ran = run_kernel(options, Execution(recorder=spans))
    row, col = np.unravel_index(ran.maps["finish_cycle"].argmax(), (4, 4))
    idle = ran.cycles - spans.computed((int(row), int(col)))
    found = ran.breakdown_cycles["communication"]
    assert idle > 0
    # Blocks of the shortest work are far out of order in FlatAttention's program.
    out_of_order = level == "lt" and (name, chip) == ("flat-attention", "rtl-4x4")
    assert found == pytest.approx(idle, abs=0.02 * ran.cycles if out_of_order else 0)


def test_a_loosely_timed_run_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    sizes = {"grid": "4x4", "shape": "32,64", "dtype": "int8"}
    options = KernelOptions(kernel="softmax", chip="rtl-4x4", allow_stale=True, **sizes)
    run_kernel(options, Execution(progress=lambda done, total: told.append((done, total))))
    assert told == sorted(told)
    operations = len(told) - 1  # and once more at the end
    assert told[-1] == (operations, operations)


@pytest.mark.parametrize("name", ["flat-attention", "flash-attention-2", "flash-attention-3"])
@pytest.mark.parametrize("compute", ["at", "perf"])
def test_no_part_of_a_closed_form_is_below_nothing(name: str, compute: str) -> None:
    for shape in ("1,4,4,64,64,16,16", "1,8,8,16,256,32,32"):
        ran = run_kernel(
            KernelOptions(
                kernel=name, chip="rtl-4x4", grid="4x4", shape=shape, dtype="int8", level="perf",
                memory="perf", compute=compute, allow_stale=True,
            )
        )  # fmt: skip
        assert min(ran.breakdown_cycles.values()) >= 0
        assert sum(ran.breakdown_cycles.values()) == ran.cycles


@pytest.mark.parametrize(
    ("name", "chip", "shape", "partition"),
    [
        # Sums stand behind products in the program and start long before these.
        ("partitioned-gemm", "npusim-large", "64,512,512", "2d"),
        ("grouped-gemm", "flat32", "12,45,176,196", None),
    ],
)
def test_nor_of_a_run_that_works_out_of_order(
    name: str, chip: str, shape: str, partition: str | None
) -> None:
    options = KernelOptions(
        kernel=name, chip=chip, grid="4x4", shape=shape, dtype="fp16", partition=partition,
        allow_stale=True,
    )  # fmt: skip
    ran = run_kernel(options)
    assert min(ran.breakdown_cycles.values()) >= 0
    assert sum(ran.breakdown_cycles.values()) == ran.cycles
