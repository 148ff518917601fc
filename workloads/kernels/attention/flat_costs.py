"""Cycles of FlatAttention's parts, as its timeline takes them."""

from typing import NamedTuple

from tlm.compiled import Numbers, inlined


class Slices(NamedTuple):
    """Cycles of slices of one kind.

    Attributes:
        port: For which the tile's transfer engine sends one.
        there: From then to its arrival everywhere.
        asked: From asking for one to its arrival, less those for which a channel is busy with it.
        served: For which the channel is busy with those of all its tiles. If they fill its links,
            with what other groups send along the column beside them, too.
        ahead: Of these, those of tiles of other groups, which go on before the last one does.
        tiles: So many that the channel serves.
        nearer: From a request of the nearest of its tiles at the channel to one of the farthest.
    """

    port: int
    there: int
    asked: int
    served: int
    ahead: int
    tiles: int
    nearer: int


class Stored(NamedTuple):
    """Cycles of results of one kind.

    Attributes:
        port: For which the tile's transfer engine sends one.
        served: For which the channel is busy with those of all its tiles.
        ahead: Of these, those of tiles of other groups.
        written: From then to the tile's knowing of it.
    """

    port: int
    served: int
    ahead: int
    written: int


class Together(NamedTuple):
    """Cycles of what comes together along a row.

    Attributes:
        gathered: From the parts to the result at the diagonal.
        port: For which the tile's transfer engine then sends it out.
        spread: From then to its arrival everywhere.
        sends: Whether the diagonal sends its part, too.
        last: From when the last part leaves to the result, if all goes by messages; else 0.
        behind: To the result from when the diagonal has sent slices on, if other tiles send these
            on behind it, and then their parts.
    """

    gathered: int
    port: int
    spread: int
    sends: bool
    last: int
    behind: int


class Costs(NamedTuple):
    """Cycles of a plan's parts.

    Attributes:
        scores: The product of Q and K.
        output: The product with V.
        wide: A pass over scores.
        column: One over an element a row.
        deep: One over an output.
        ask: For which the transfer engine asks for a slice; 0 without off-chip memory.
        sent: For which it sends a part of an output; 0 if it only takes in those of others.
        rows: What comes together twice an item.
        summed: Outputs, of which the diagonal alone gets the result.
        added: Whether the vector engine adds them up.
        again: For which the root of a tree sends Q behind its first message.
        q: Slices.
        k: Slices.
        v: Slices.
        mask: Slices, or of a causal mask what tiles of their own bring.
        unseen: What all tiles bring beside it, if tiles have parts of masks.
        total: Results.
        o: Results.
        packets: Of Q that come one after the other, if tiles of a row send other slices to
            themselves; else 0.
        room: Flits of Q that buffers take on the way to these.
        turns: Of slices that come while one is sent on, one in so many is the tile's own, and takes
            turns with it; 0: none does, or tiles work alone, of which none waits for the slowest.
    """

    scores: int
    output: int
    wide: int
    column: int
    deep: int
    ask: int
    sent: int
    rows: Together
    summed: int
    added: bool
    again: int
    q: Slices
    k: Slices
    v: Slices
    mask: Slices
    unseen: Slices
    total: Stored
    o: Stored
    packets: int
    room: int
    turns: int


#: Where a table of costs has for which a channel is busy with the mask of one tile, in parts of a
#: cycle.
MASK_SERVED = 59


@inlined
def costs_of(own: Numbers[int]) -> Costs:
    """From a row of numbers: those of a block's rows, of its keys, and of both."""
    return Costs(
        column=own[0], deep=own[1], ask=own[2], sent=own[3], added=own[4] != 0, summed=own[5],
        rows=Together(own[6], own[7], own[8], own[9] != 0, own[10], own[11]), again=own[12],
        q=_slices(own, 13), unseen=_slices(own, 20), total=_stored(own, 27), o=_stored(own, 31),
        k=_slices(own, 35), v=_slices(own, 42),
        scores=own[49], output=own[50], wide=own[51], mask=_slices(own, 52),
        packets=own[60], room=own[61], turns=own[62],
    )  # fmt: skip


@inlined
def _slices(own: Numbers[int], at: int) -> Slices:
    return Slices(
        own[at], own[at + 1], own[at + 2], own[at + 3], own[at + 4], own[at + 5], own[at + 6]
    )


@inlined
def _stored(own: Numbers[int], at: int) -> Stored:
    return Stored(own[at], own[at + 1], own[at + 2], own[at + 3])
