"""What a mesh of anybody's routers costs: cells of a router and of a whole chip.

A router is all that stands once at each node of the mesh (`parts.py`), at a node in the middle, and
its share of what else there is. Modules are synthesised one by one with the parameters that they
have in the mesh; nothing is simplified from one to another, or at the edge.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import SimulationError
from cosim.spec.mesh import MeshSpec
from cosim.synthesis.cells import Synthesised, synthesised
from cosim.synthesis.parts import parts_of
from cosim.synthesis.yosys import yosys_version
from cosim.verilated.cache import ask_verilator, cached
from cosim.verilated.progress import Work
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import file_hash
from tlm.errors import InputError
from tlm.tables import Table

#: Payloads that are synthesised; of wider ones cells are what lies on a line through both.
_NARROW_BITS, _WIDE_BITS = 64, 128
#: Largest mesh of which Verilator is asked what its routers are.
_LARGEST_SIDE = 64
_WORKERS = 2
_GATES = "gates.json"
_SYNTHESIS = "-DSYNTHESIS"


class RouterGates(Table):
    """A router's cells.

    Attributes:
        cells: Logic gates of any kind, and flip-flops.
        nand2: The logic gates in NAND2 equivalents.
        flip_flops: The flip-flops.
        longest_path_cells: Gates on the longest path from flip-flop or port to flip-flop or port.
        area_um2: Area of a library's cells; None without one.
    """

    cells: int
    nand2: int
    flip_flops: int
    longest_path_cells: int
    area_um2: float | None = None


class MeshGates(Table):
    """Gates of a mesh's routers.

    Attributes:
        router: A router, and whatever stands beside it at a node.
        payload_bits: Bits of a payload.
        synthesised_bits: Payloads that were synthesised.
        rows: Rows of the mesh whose routers they are.
        cols: Its columns.
    """

    router: RouterGates
    payload_bits: int
    synthesised_bits: tuple[int, ...]
    rows: int
    cols: int


def mesh_gates(
    spec: MeshSpec, rows: int, cols: int, payload_bits: int, liberty: Path | None = None
) -> MeshGates:
    """Gates of the routers of a mesh, from the cache if they are there.

    Args:
        spec: The mesh. Without ``payload_parameter`` payloads are as wide as it says.
        rows: Rows. Where the mesh cannot be built so large, its routers are those of the fit's.
        cols: Columns.
        payload_bits: Bits of a payload.
        liberty: A library of cells, for areas.

    Raises:
        SimulationError: if Verilator finds errors in the Verilog.
        ToolError: if Yosys cannot synthesise it.
        InputError: if Yosys is not there, or the cache cannot be written.
    """
    by_parameter = spec.rtl.payload_parameter is not None
    payload_bits = payload_bits if by_parameter else spec.payload_bits
    widths = (_NARROW_BITS, _WIDE_BITS) if payload_bits > _WIDE_BITS else (payload_bits,)
    size = (rows, cols) if _can_be_built(spec, rows, cols) else spec.mesh.fit
    meshes = [_Mesh(spec, *size, bits) for bits in (widths if by_parameter else (payload_bits,))]
    own = [Path(__file__).with_name(f"{name}.py") for name in ("cells", "mesh", "parts")]
    content = [
        spec.rtl.top,
        [spec.rtl.flags(), [mesh.parameters(*size) for mesh in meshes], spec.mesh.fit],
        payload_bits,
        [file_hash(path) for path in (*spec.source_files(), *own)],
        {**tool_versions(), "yosys": yosys_version()},
        *([] if liberty is None else [file_hash(liberty)]),
    ]

    def make(folder: Path) -> None:
        routers = _synthesise(meshes, folder, liberty)
        found = MeshGates(
            router=routers[0] if len(routers) == 1 else _extended(routers, payload_bits),
            payload_bits=payload_bits,
            synthesised_bits=tuple(mesh.payload_bits for mesh in meshes),
            rows=size[0],
            cols=size[1],
        )
        (folder / _GATES).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")

    built = cached(
        "gates",
        content,
        make,
        shown=f"gates of {meshes[0].name}, payloads of {payload_bits} bits",
        nodes=size[0] * size[1],
        ask=meshes[0].ask,
        include_folders=spec.include_folders(),
        work=_COUNTING,
    )
    return MeshGates.model_validate_json((built.folder / _GATES).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class _Module:
    """A module to be synthesised.

    Attributes:
        read: The command of Yosys that reads it.
        name: Its name.
        each_node: How many there are at a node.
        beside: Modules in it that are synthesised by themselves.
    """

    read: str
    name: str
    each_node: float
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mesh:
    """A mesh of ``rows`` x ``cols`` nodes with payloads of ``payload_bits``."""

    spec: MeshSpec
    rows: int
    cols: int
    payload_bits: int

    @property
    def name(self) -> str:
        """The mesh and its size, for messages."""
        return f"{self.spec.name} {self.rows}x{self.cols}"

    def parameters(self, rows: int, cols: int) -> dict[str, int]:
        """Values of the top's parameters in a size."""
        mesh, rtl = self.spec.mesh, self.spec.rtl
        given = dict(rtl.parameters)
        if mesh.rows_parameter and mesh.cols_parameter:
            given |= {mesh.rows_parameter: rows, mesh.cols_parameter: cols}
        if rtl.payload_parameter:
            given[rtl.payload_parameter] = self.payload_bits
        return given

    def ask(self, folder: Path) -> None:
        """Have Verilator say what it reads."""
        if problem := ask_verilator(folder, self.spec.rtl.top, self._verilator()):
            raise SimulationError(problem[-4000:])

    def modules(self) -> list[_Module]:
        """What a node is made of: modules that it has, and its share of what lies around them."""
        top, fit = self.spec.rtl.top, self.spec.mesh.fit
        parts = parts_of(top, self._verilator(), self.rows * self.cols)
        names = tuple(part.module for part in parts)
        around = [f"--blackboxed-module {name}" for name in names]
        read = self._read(top, self.parameters(*fit), "--keep-hierarchy", *around)
        return [
            *(_Module(self._read(p.module, p.parameters), p.module, p.each_node) for p in parts),
            _Module(read, top, 1 / (fit[0] * fit[1]), names),
        ]

    def synthesised(self, module: _Module, scratch: Path, liberty: Path | None) -> Synthesised:
        """One of the modules, made of gates."""
        return synthesised(
            module.read,
            module.name,
            scratch,
            user=self._user,
            beside=module.beside,
            liberty=liberty,
        )

    @property
    def _user(self) -> Path:
        """The folder in which all of the user's Verilog lies."""
        folders = [path.resolve().parent for path in self.spec.source_files()]
        folders += [path.resolve() for path in self.spec.include_folders()]
        return Path(os.path.commonpath(folders))

    def _verilator(self) -> list[str]:
        given = self.parameters(self.rows, self.cols).items()
        return [
            _SYNTHESIS,
            *self.spec.rtl.flags(),
            *(f"-G{name}={value}" for name, value in given),
            *(f"-I{place}" for place in self.spec.include_folders()),
            *map(str, self.spec.source_files()),
        ]

    def _read(self, top: str, parameters: Mapping[str, int], *options: str) -> str:
        """The command of Yosys that reads a module."""
        defines = self.spec.rtl.defines.items()
        return " ".join([
            "read_slang --threads 1 --single-unit --ignore-assertions --ignore-initial",
            "--ignore-timing", _SYNTHESIS, *options, f"--top {top}",
            *(f"-G {name}={value}" for name, value in parameters.items()),
            *(f"-D {name}={value}" for name, value in defines),
            *(f"-I {self._seen(path)}" for path in self.spec.include_folders()),
            *(self._seen(path) for path in self.spec.source_files()),
        ])  # fmt: skip

    def _seen(self, path: Path) -> str:
        """A path as Yosys sees it."""
        return f"/user/{path.resolve().relative_to(self._user).as_posix()}"


def _can_be_built(spec: MeshSpec, rows: int, cols: int) -> bool:
    try:
        spec.check_size(rows, cols)
    except InputError:
        return False
    return max(rows, cols) <= _LARGEST_SIDE


def _synthesise(meshes: Sequence[_Mesh], folder: Path, liberty: Path | None) -> list[RouterGates]:
    """A router of each of the meshes."""
    jobs = []
    for number, mesh in enumerate(meshes):
        for module in mesh.modules():
            scratch = folder / f"{number}-{module.name}"
            scratch.mkdir()
            jobs.append((number, mesh, module, scratch))
    # What lies around modules takes seconds, and tells first what of a mesh cannot be synthesised.
    jobs.sort(key=lambda job: not job[2].beside)
    around = sum(bool(job[2].beside) for job in jobs)
    with ThreadPoolExecutor(_WORKERS) as pool:
        found = [
            one
            for some in (jobs[:around], jobs[around:])
            for one in pool.map(lambda job: job[1].synthesised(job[2], job[3], liberty), some)
        ]
    made = [(job[0], job[2].each_node, one) for job, one in zip(jobs, found, strict=True)]
    return [
        _router([(share, one) for its, share, one in made if its == number])
        for number in range(len(meshes))
    ]


def _router(modules: Sequence[tuple[float, Synthesised]]) -> RouterGates:
    """A router of modules, each so many times."""
    return RouterGates(
        cells=round(sum(share * each.cells for share, each in modules)),
        nand2=round(sum(share * each.cost.nand2 for share, each in modules)),
        flip_flops=round(sum(share * each.cost.flip_flops for share, each in modules)),
        longest_path_cells=max(each.longest_path_cells for _, each in modules),
        area_um2=_summed((share, each.area_um2) for share, each in modules),
    )


def _summed(parts: Iterable[tuple[float, float | None]]) -> float | None:
    """Areas of shares; None if one is not known."""
    areas = [None if area is None else share * area for share, area in parts]
    known = [area for area in areas if area is not None]
    return sum(known) if len(known) == len(areas) else None


def _extended(routers: Sequence[RouterGates], payload_bits: int) -> RouterGates:
    """A router with wider payloads than two that were synthesised."""
    narrow, wide = (router.model_dump() for router in routers)
    steps = (payload_bits - _NARROW_BITS) / (_WIDE_BITS - _NARROW_BITS)
    sizes = {
        name: round(narrow[name] + steps * (wide[name] - narrow[name]))
        for name in ("cells", "nand2", "flip_flops")
    }
    area_um2 = None
    if wide["area_um2"] is not None:
        area_um2 = narrow["area_um2"] + steps * (wide["area_um2"] - narrow["area_um2"])
    return RouterGates(**wide | sizes | {"area_um2": area_um2})


def _how_far(folder: Path) -> str:
    """The step that a count is at."""
    modules = [path for path in folder.iterdir() if path.is_dir()]
    if not modules:
        return "Verilator reads the Verilog"
    done = sum((path / "cells.json").is_file() for path in modules)
    return f"{done} of {len(modules)} modules synthesised"


_COUNTING = Work("counting", "counted", 60, 0.1, _how_far)
