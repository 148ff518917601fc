"""cocotb bench of the routes (rtl/noc/tree_route.sv, reduce_route.sv) in rtl/bench/routes_bench.sv.

Every place, port and set of tiles of a mesh, both orders of the dimensions, with and without
loopback, against ways laid tile by tile.
"""

import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer

from tests.rtl.benches.block_check import Seen, record
from tests.rtl.benches.routes import PORTS, Routes, Tile, bits, subsets

_PLAN: dict[str, int] = json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text())
_ROWS, _COLS = _PLAN["rows"], _PLAN["cols"]
#: By the number of the order of dimensions, and then by loopback.
_ROUTES = [[Routes(_ROWS, _COLS, bool(y), bool(loop)) for loop in (0, 1)] for y in (0, 1)]
_TILES = _ROUTES[0][0].tiles()
_SETS = list(product(subsets(_ROWS), subsets(_COLS)))


@cocotb.test()
async def unicasts_go_by_the_binary_destination(dut: Any) -> None:
    """Whatever the masks hold."""
    seen = 0
    for at, tile, masks in product(_TILES, _TILES, (0, 1)):
        seen += await _trees(dut, at, tile, masks=(masks * 0xFF, masks * 0xFF))
    record("unicasts_go_by_the_binary_destination", {"cases": seen})


@cocotb.test()
async def multicasts_go_by_the_masks(dut: Any) -> None:
    """Whatever the binary destination holds."""
    seen = 0
    for at, (rows, cols), tile in product(_TILES, _SETS, (_TILES[0], _TILES[-1])):
        seen += await _trees(dut, at, tile, rows, cols)
    record("multicasts_go_by_the_masks", {"cases": seen})


@cocotb.test()
async def operands_meet_where_their_ways_do(dut: Any) -> None:
    """All roots and all sets of tiles, also in routers that no way passes."""
    seen: Seen = {"cases": 0, "passed_by": 0, "five": 0}
    for at, root, (rows, cols) in product(_TILES, _TILES, _SETS):
        await _show(dut, at, root, masks=(bits(rows), bits(cols)))
        found_in = dut.inputs_o.value.to_unsigned()
        found_out = dut.output_o.value.to_unsigned()
        for y, (routes, _) in enumerate(_ROUTES):
            inputs, output = routes.meeting(frozenset(product(rows, cols)), root, at)
            where = f"{set(rows)} x {set(cols)} to {root} at {at}, y_first {y}"
            assert found_in >> y * PORTS & 31 == bits(inputs), f"{where}: not {set(inputs)}"
            if output is not None:
                assert found_out >> y * PORTS & 31 == 1 << output, f"{where}: not to {output}"
            seen["cases"] += 1
            seen["passed_by"] += output is None
            seen["five"] += len(inputs) == PORTS
    record("operands_meet_where_their_ways_do", seen)


async def _show(dut: Any, at: Tile, tile: Tile, masks: tuple[int, int], many: int = 0) -> None:
    """Let the routes see a header."""
    dut.at_row_i.value, dut.at_col_i.value = at
    dut.row_i.value, dut.col_i.value = tile
    dut.row_mask_i.value = masks[0] & (1 << _ROWS) - 1
    dut.col_mask_i.value = masks[1] & (1 << _COLS) - 1
    dut.multicast_i.value = many
    await Timer(1, unit="ns")


async def _trees(
    dut: Any,
    at: Tile,
    tile: Tile,
    rows: frozenset[int] = frozenset(),
    cols: frozenset[int] = frozenset(),
    masks: tuple[int, int] | None = None,
) -> int:
    """Hold the outputs for all ports against the reference; how many are reached."""
    await _show(dut, at, tile, masks or (bits(rows), bits(cols)), many=masks is None)
    found, cases = dut.ports_o.value.to_unsigned(), 0
    for y, loop, port in product((0, 1), (0, 1), range(PORTS)):
        routes = _ROUTES[y][loop]
        if masks is None:
            expected = routes.multicast(frozenset(product(rows, cols)), at, port)
        else:
            expected = routes.unicast(tile, at, port)
        if expected is not None:
            outputs = found >> ((2 * y + loop) * PORTS + port) * PORTS & 31
            assert outputs == bits(expected), (
                f"{masks or (set(rows), set(cols))} to {tile} by {port} at {at}, y_first {y}, "
                f"loopback {loop}: {outputs:05b}, not {set(expected)}"
            )
            cases += 1
    return cases
