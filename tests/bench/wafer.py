"""Speed of what looks at a whole wafer: the static check of a kernel, and links between dies."""

from functools import partial

import numpy as np

from tests.bench.measure import Row, cpu_seconds
from tests.bench.network import Note
from tlm.check import TileLimits, check_program
from tlm.chips import load_chip
from tlm.dies.collectives import collective
from tlm.dies.links import die_mesh
from tlm.dies.messages import Messages
from tlm.dies.simulate import simulate
from tlm.interconnect.packets import TileSet
from tlm.program import Program
from workloads.kernels.gemm.mesh_gemm import mesh_gemm
from workloads.kernels.gemm.plan import GemmPlan

_CHECKS = {720: 15.0}  # CPU seconds
_CROSSINGS_PER_S = 1e6


def check_rows(sides: tuple[int, ...], runs: int, done: Note) -> list[Row]:
    """The static check of MeshGEMM."""
    check_program(_gemm(4), TileLimits())  # compile
    rows = []
    for side in sides:
        seconds = []
        for _ in range(runs):
            seconds.append(cpu_seconds(partial(check_program, _gemm(side), TileLimits())))
            done()
        name = f"check, MeshGEMM {side}x{side}"
        rows.append(Row(name, "CPU-s", tuple(seconds), _CHECKS.get(side)))
    return rows


def _gemm(side: int) -> Program:
    return mesh_gemm(GemmPlan(side, side, (2, 2, 2), 300, 4, 4))


def dies_rows(size: int, runs: int, done: Note) -> list[Row]:
    """All-to-all between all dies of a wafer, packet by packet."""
    mesh = die_mesh(load_chip("flat32-wafer"))
    everywhere = TileSet(range(mesh.rows), range(mesh.cols))
    simulate(collective("all-to-all", mesh, everywhere, 1), mesh)  # compile
    messages = collective("all-to-all", mesh, everywhere, size)
    crossings = link_crossings(messages, mesh.cols, mesh.packet_units)
    rates = []
    for _ in range(runs):
        rates.append(crossings / cpu_seconds(partial(simulate, messages, mesh)))
        done()
    name = f"dies, all-to-all of {size:,} bytes on {mesh.rows}x{mesh.cols}"
    return [Row(name, "link crossings/CPU-s", tuple(rates), _CROSSINGS_PER_S)]


def link_crossings(messages: Messages, cols: int, packet_units: int) -> int:
    """Packets times links on their ways."""
    row, col = np.divmod(messages.source, cols)
    to_row, to_col = np.divmod(messages.target, cols)
    packets = -(-messages.units // packet_units)
    return int((packets * (abs(to_row - row) + abs(to_col - col))).sum())
