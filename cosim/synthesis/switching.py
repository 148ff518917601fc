"""How much a mesh's routers switch: toggles of their nets under traffic that is the same for all.

Of each payload 32 bits are arbitrary, and those above are its packet's number. The same packets run
twice, with other data: nets that then change in other cycles are of the payload, and as many more
of them as it has bits are in a wider one.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cosim.network.deliveries import simulate
from cosim.network.model import LoopModel
from cosim.spec.mesh import MeshSpec
from cosim.synthesis.toggles import Toggles, toggles
from cosim.verilated.cache import cached
from cosim.verilated.progress import Work
from cosim.verilated.toolchain import tool_versions
from tlm.calibrated import file_hash
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet, cut
from tlm.interconnect.traffic import Traffic
from tlm.tables import Table

_RATE, _CYCLES, _FLITS = 0.2, 300, 4
#: Bits of a payload that are arbitrary (cosim/network/flits.h).
_ARBITRARY_BITS = 32
#: From one collective to the next, so that none meets another.
_APART_CYCLES = 100
#: Columns of a row that collectives are about: by don't-care masks, too, they can be named.
_COLS, _FAR_COLS = range(4), range(2, 4)
_HALF_CYCLE_PS = 1000  # of cosim/network/loop.cpp
_FOUND = "toggles.json"
#: Number of the first packet of the run with other data.
_OTHERS = 1 << 20
_COUNTING = Work("counting", "counted", 10, 0, lambda folder: "the mesh runs")


class MeshToggles(Table):
    """What a router switches under the traffic: toggles of its nets, all nodes' on average.

    Attributes:
        control: Of nets that payloads say nothing to.
        payload_bit: More for each bit of a payload.
        operations: What the traffic is made of.
    """

    control: float
    payload_bit: float
    operations: tuple[str, ...]

    def router(self, payload_bits: int) -> int:
        """Toggles of a router whose payloads have so many bits."""
        return round(self.control + payload_bits * self.payload_bit)


def mesh_toggles(spec: MeshSpec) -> MeshToggles:
    """Toggles of the routers of a mesh of the fit's size, from the cache if they are there.

    Args:
        spec: The mesh, with payloads as wide as it says.

    Raises:
        SimulationError: if the mesh cannot be built, or something wrong comes out.
        HangError: if it stands still.
        InputError: if it is too large for this process, or the cache cannot be written.
    """
    rows, cols = spec.mesh.fit
    model = LoopModel(_as_synthesised(spec), rows, cols, waves=True)
    packets, operations = _traffic(spec)
    own = [Path(__file__).with_name(f"{name}.py") for name in ("switching", "toggles")]
    content = [
        model.build().parent.name,  # of the model's content
        [file_hash(path) for path in own],
        tool_versions(),
    ]

    def make(folder: Path) -> None:
        one, other = (_counted(model, packets, folder, first) for first in (0, _OTHERS))
        nodes, data = rows * cols, one.apart(other)
        found = MeshToggles(
            control=(one.total - data) / nodes,
            payload_bit=data / nodes / _ARBITRARY_BITS,
            operations=operations,
        )
        (folder / _FOUND).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")

    built = cached(
        "toggles",
        content,
        make,
        shown=f"toggles of {model.name}",
        nodes=rows * cols,
        work=_COUNTING,
    )
    return MeshToggles.model_validate_json((built.folder / _FOUND).read_text(encoding="utf-8"))


def _as_synthesised(spec: MeshSpec) -> MeshSpec:
    """The mesh as Yosys reads it; waves have all signals, however wide."""
    rtl = spec.rtl
    options = (*rtl.verilator_options, "--trace-max-width", "0", "--trace-max-array", "0")
    changed = {"defines": rtl.defines | {"SYNTHESIS": 1}, "verilator_options": options}
    return spec.model_copy(update={"rtl": rtl.model_copy(update=changed)})


def _counted(model: LoopModel, packets: Packets, folder: Path, first: int) -> Toggles:
    wave = folder / "wave.vcd"
    simulate(model, packets, waves=wave, first=first)
    found = toggles(wave, _HALF_CYCLE_PS, model.spec.reset.cycles + 1)
    wave.unlink()
    return found


def _traffic(spec: MeshSpec) -> tuple[Packets, tuple[str, ...]]:
    """Unicasts from all to all, then a multicast and each reduction in every row, one by one."""
    rows, cols = spec.mesh.fit
    flits = min(_FLITS, spec.limits.packet_flits or _FLITS)
    unicasts = Traffic(rows, cols, "uniform", _RATE, flits, _CYCLES, seed=0).packets()
    collectives = Packets.of(_collectives(spec), first=len(unicasts))
    columns = zip(unicasts.columns(), collectives.columns(), strict=True)
    packets = Packets(*(np.concatenate(pair) for pair in columns))
    kinds = np.unique(packets.kind).tolist()
    return packets, tuple(PacketKind(kind).name.lower() for kind in kinds)


def _collectives(spec: MeshSpec) -> Iterator[tuple[int, int, TileSet | ReductionGoal, int]]:
    rows, cols = spec.mesh.fit
    limits, cycle = spec.limits, 2 * _CYCLES
    if spec.features.multicast:
        for row in range(rows):
            cycle += _APART_CYCLES
            for flits in cut(_FLITS, min(_FLITS, limits.multicast_flits or _FLITS)):
                yield cycle, row * cols, TileSet(range(row, row + 1), _FAR_COLS), flits
    for name in spec.reductions():
        for row in range(rows):
            cycle += _APART_CYCLES
            kind, tiles = PacketKind[name.upper()], TileSet(range(row, row + 1), _COLS)
            goal = ReductionGoal(tiles, row * cols, kind)
            for flits in cut(_FLITS, min(_FLITS, limits.reduction_flits or _FLITS)):
                for node in tiles.nodes(cols):
                    yield cycle, node, goal, flits
