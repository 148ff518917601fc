"""Numbers of the sequencers' tokens: what may share one, and what may not."""

import numpy as np

from cosim.tiles.tokens import plan_tokens
from tlm.interconnect.packets import TileSet
from tlm.program import Load, Program, Send, Token, Work
from tlm.program.operations import Engine
from tlm.program.steps import expand

TILE, HERE = TileSet.tile(0, 0), np.array([0])


def arrivals(*transfers: Load | Send) -> list[tuple[int, ...]]:
    """Tokens that transfers give at a tile where work takes them in the same order."""
    names = [name for transfer in transfers for name in transfer.arrivals]
    works = [Work(Engine.MATRIX, TILE, 9, takes=(name,)) for name in names]
    program = Program(1, 1, dict.fromkeys(names, Token()), lambda: [*transfers, *works])
    plan = plan_tokens(program, list(expand(program)))
    return plan.arrivals[: len(transfers)]


def test_what_comes_from_a_tile_in_order_shares_a_token() -> None:
    sends = [Send(TILE, HERE, HERE, 4, arrivals=(name,)) for name in ("a", "b")]
    assert arrivals(*sends) == [(0,), (0,)]


def test_a_load_is_overtaken_by_what_its_tile_sends_and_by_other_loads() -> None:
    loads = [Load(TILE, 4, arrivals=(name,)) for name in ("a", "b")]
    send = Send(TILE, HERE, HERE, 4, arrivals=("c",))
    assert arrivals(*loads, send) == [(0,), (1,), (2,)]
