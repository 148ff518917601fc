"""Cells of a table that has one for every stage whose numbers are rounded, and their prices.

A rounded number has a place among all of them: those below ``2 ** bits`` are their own, and above
there are half as many between a power of two and the next.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from tlm.compiled import compiled
from workloads.serving.price.compared_prices import Price
from workloads.serving.price.cost import Int64s
from workloads.serving.price.iteration import Attended, Decoded, Passed, Stage
from workloads.serving.price.parts import BITS, PROMPT_BITS, Head

Priced = Callable[[Stage], Price]
#: No iteration has more tokens than two to this.
_MOST_BITS = 40


@compiled
def place_of(number: int, bits: int) -> int:
    """Place of a number when it is rounded."""
    spare = 0
    while number >> spare >> bits:
        spare += 1
    rounded = (number + (1 << spare >> 1)) >> spare
    return (spare << bits - 1) + rounded


@compiled
def number_at(place: int, bits: int) -> int:
    """The rounded number at a place."""
    spare = max(0, (place >> bits - 1) - 1)
    return (place - (spare << bits - 1)) << spare


def _places(bits: int) -> int:
    """Places of all numbers of tokens."""
    return (_MOST_BITS + 2 - bits << bits - 1) + 1


_NUMBERS, _PROMPTS = _places(BITS), _places(PROMPT_BITS)
_HEADS = _NUMBERS
_ATTENDED = _HEADS + _NUMBERS
_DECODED = _ATTENDED + _PROMPTS * _PROMPTS


@compiled
def passed_cell(tokens: int) -> int:
    """Of tokens that pass all layers."""
    return place_of(tokens, BITS)


@compiled
def head_cell(rows: int) -> int:
    """Of the output head."""
    return _HEADS + place_of(rows, BITS)


@compiled
def attended_cell(new: int, context: int) -> int:
    """Of a prompt chunk's attention in all layers, by `rounded_chunk`."""
    place = place_of(new, PROMPT_BITS)
    seen = context + number_at(place, PROMPT_BITS) // 2
    return _ATTENDED + place * _PROMPTS + place_of(seen, PROMPT_BITS)


@compiled
def decoded_cell(sequences: int, context: int) -> int:
    """Of attention of so many requests, each with a token, none in SRAM."""
    return _DECODED + sequences * _NUMBERS + place_of(context, BITS)


def stage_at(cell: int, layers: range) -> Stage:
    """The stage of a cell, of a model with some layers."""
    if cell < _HEADS:
        return Passed(number_at(cell, BITS), layers)
    if cell < _ATTENDED:
        return Head(number_at(cell - _HEADS, BITS))
    if cell < _DECODED:
        new, seen = (number_at(place, PROMPT_BITS) for place in divmod(cell - _ATTENDED, _PROMPTS))
        return Attended(new, seen - new // 2, layers)
    sequences, context = divmod(cell - _DECODED, _NUMBERS)
    return Decoded(sequences, 1, number_at(context, BITS), 0)


class Counted(NamedTuple):
    """What iterations of some stages come to.

    Attributes:
        made_of: How often each stage ran.
        expert_bytes: That they read.
    """

    made_of: Counter[Hashable]
    expert_bytes: int


class StageTable:
    """Prices of stages, each in its cell.

    It does not keep what prices them, which keeps it: both are gone with their last user.

    Args:
        layers: All of the model's.
        max_sequences: Most decoding requests.

    Attributes:
        is_known: Whether a cell's stage has a price. Shape (cells,).
        cycles: Of each cell's stage. Shape (cells,).
        joules: The same.
    """

    def __init__(self, layers: range, max_sequences: int) -> None:
        self._layers, cells = layers, _DECODED + (max_sequences + 1) * _NUMBERS
        # Zeros that are never written take no memory, and most cells are never asked for.
        self.is_known = np.zeros(cells, dtype=np.bool_)
        self.cycles, self.joules = np.zeros(cells), np.zeros(cells)

    def find(self, cell: int, price: Priced) -> None:
        """Find the price of a cell's stage."""
        found = price(stage_at(cell, self._layers))
        self.cycles[cell], self.joules[cell] = found.cycles, found.joules
        self.is_known[cell] = True

    def find_all_of(self, other: "StageTable", price: Priced) -> None:
        """Find the prices of all stages that have one in another table."""
        for cell in np.flatnonzero(other.is_known).tolist():
            self.find(cell, price)

    def counted(self, times: Int64s, price: Priced) -> Counted:
        """Of so many stages in each cell."""
        made_of, expert_bytes = Counter[Hashable](), 0
        for cell in np.flatnonzero(times).tolist():
            stage, often = stage_at(cell, self._layers), int(times[cell])
            made_of[stage] = often
            expert_bytes += often * round(price(stage).expert_bytes)
        return Counted(made_of, expert_bytes)
