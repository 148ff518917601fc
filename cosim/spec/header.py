"""Flits of another mesh: places of the fields, and packets as flits and back.

Words are 64 bits, a flit's low one first.
"""

import numpy as np
from numpy.typing import NDArray

from cosim.spec.flits import Words, flits_of, mask
from cosim.spec.mesh import MeshSpec
from cosim.spec.sets import allowed, in_words
from tlm.errors import InputError
from tlm.interconnect.packets import PacketKind, Packets, ReductionGoal, TileSet

_WORD = 64


class FlitLayout:
    """Where the fields of a flit stand on a mesh of ``rows`` x ``cols``.

    Attributes:
        width: Bits of a flit.
        payload_lsb: Lowest bit of the payload.
        last_bit: The bit that marks a packet's last flit.
    """

    def __init__(self, spec: MeshSpec, rows: int, cols: int) -> None:
        """Place the fields from the low end up.

        Raises:
            InputError: if the mesh cannot have this size.
        """
        spec.check_size(rows, cols)
        self._spec, self._rows, self._cols = spec, rows, cols
        widths = [field.width(rows, cols) for field in spec.flit]
        lsbs = np.cumsum([0, *widths])
        self.width = int(lsbs[-1])
        self._places = list(zip(spec.flit, lsbs[:-1].tolist(), widths, strict=True))
        lsb = {field.field: place for field, place, _ in self._places}
        self.payload_lsb, self.last_bit = lsb["payload"], lsb["last"]
        self._behind = self._behind_the_first()

    @property
    def longest_flits(self) -> int | None:
        """Longest packet that the field ``length`` can count; None without the field."""
        if not self._spec.has("length"):
            return None
        most: int = (1 << self._spec.field("length").width(self._rows, self._cols)) - 1
        return most

    def names(self, goal: TileSet | ReductionGoal) -> bool:
        """Whether a header can name these destinations, or this reduction."""
        where = goal.operands if isinstance(goal, ReductionGoal) else goal
        root = goal.root // self._cols if isinstance(goal, ReductionGoal) else 0
        inside = self._inside(where) and 0 <= root < self._rows
        return inside and _names(self._spec, goal, self._cols)

    def encode(self, packets: Packets) -> Words:
        """All flits, shape (flits, words): packet by packet, flit by flit.

        The length of a unicast is cut to its field: routers that let unicasts be longer than the
        field counts do not read it.

        Raises:
            InputError: for the first packet that headers of this mesh cannot express.
        """
        self.check(packets)
        packet, flit, _ = flits_of(packets, np.arange(len(packets)))
        number = packet.astype(np.int64)
        header = self._header(packets)
        header |= {
            "payload": self._spec.data_law.sent(packets, packet, flit),
            "last": flit + np.uint64(1) == packets.flits[number].astype(np.uint64),
        }
        words: Words = np.zeros((len(number), -(-self.width // _WORD)), dtype=np.uint64)
        for field, lsb, bits in self._places:
            if field.field == "constant":
                values = np.full(len(number), field.value, dtype=np.uint64)
            else:
                values = header[field.field].astype(np.uint64)
            if len(values) != len(number):
                values = values[number]
            _put(words, lsb, values & np.uint64((1 << min(bits, _WORD)) - 1))
        words[flit > 0] &= self._behind
        return words

    def behind(self, first: Words) -> Words:
        """A flit behind a packet's first one, of that and without its own payload and last bit."""
        return np.asarray(first & self._behind, dtype=np.uint64)

    def _behind_the_first(self) -> Words:
        """Bits that flits have behind a packet's first: all, or no header's."""
        bits: Words = np.zeros((1, -(-self.width // _WORD)), dtype=np.uint64)
        everywhere = self._spec.features.header == "every-flit"
        for field, lsb, width in self._places:
            if everywhere or field.field in ("payload", "last", "constant"):
                for start in range(0, width, _WORD):
                    ones = (1 << min(width - start, _WORD)) - 1
                    _put(bits, lsb + start, np.array([ones], dtype=np.uint64))
        only: Words = bits[0]
        return only

    def check(self, packets: Packets) -> None:
        """Hold that headers can express packets.

        Raises:
            InputError: naming the first that they cannot.
        """
        packets.check_on(self._rows, self._cols)
        check_names(self._spec, packets, self._cols)
        longest = self.longest_flits
        if longest is not None:
            counted = np.where(packets.kind == PacketKind.UNICAST, 0, packets.flits)
            for number in np.nonzero(counted > longest)[0].tolist():
                raise InputError(
                    f"{self._spec.file.name}: packet {number}: found {counted[number]} flits; "
                    f"allowed by the field length: 1 to {longest}"
                )

    def _header(self, packets: Packets) -> dict[str, NDArray[np.int64] | Words]:
        """Fields of each packet's header, shapes (packets,)."""
        reduces, features = packets.reduces, self._spec.features
        multicast = features.multicast or features.reduction
        by_mask = np.where(reduces, features.reduction == "bitmask", multicast == "bitmask")
        masks = [
            np.where(by_mask, mask(first, last, step, size), (last - first).astype(np.uint64))
            for first, last, step, size in (
                (packets.row_first, packets.row_last, packets.row_step, self._rows),
                (packets.col_first, packets.col_last, packets.col_step, self._cols),
            )
        ]
        codes = np.zeros(len(PacketKind), dtype=np.int64)
        for name, code in self._spec.operations().items():
            codes[PacketKind[name.upper()]] = code
        return {
            "row": np.where(reduces, packets.root // self._cols, packets.row_first),
            "col": np.where(reduces, packets.root % self._cols, packets.col_first),
            "row_mask": masks[0],
            "col_mask": masks[1],
            "source_row": packets.source // self._cols,
            "source_col": packets.source % self._cols,
            "length": packets.flits,
            "operation": codes[packets.kind],
        }

    def _inside(self, where: TileSet) -> bool:
        sides = ((where.rows, self._rows), (where.cols, self._cols))
        return all(len(side) > 0 and side[0] >= 0 and side[-1] < size for side, size in sides)


def check_operations(spec: MeshSpec, packets: Packets) -> None:
    """Hold that a network has the operations of all packets.

    Raises:
        InputError: naming the first that it has not.
    """
    known = sorted(spec.operations())
    for kind in (PacketKind(value).name.lower() for value in np.unique(packets.kind).tolist()):
        if kind not in known:
            raise InputError(
                f"{spec.file.name}: operation: found a packet of kind {kind}; "
                f"allowed: {', '.join(known)}"
            )


def check_names(spec: MeshSpec, packets: Packets, cols: int) -> None:
    """Hold that headers can name all destinations and reductions, on a mesh of any size.

    Args:
        spec: How headers name them.
        packets: Packets that lie inside the mesh.
        cols: Columns of the mesh.

    Raises:
        InputError: naming the first packet for which they cannot.
    """
    known: dict[TileSet | ReductionGoal, bool] = {}
    for number in np.nonzero(packets.kind != PacketKind.UNICAST)[0].tolist():
        goal = goal_of(packets, number)
        if goal not in known:
            known[goal] = _names(spec, goal, cols)
        if not known[goal]:
            raise InputError(
                f"{spec.file.name}: packet {number}: found {in_words(goal, cols)}; "
                f"{allowed(spec, goal)}"
            )


def goal_of(packets: Packets, number: int) -> TileSet | ReductionGoal:
    """Where a packet goes, or which reduction it is an operand of."""
    where, kind = packets.tiles(number), int(packets.kind[number])
    if kind < PacketKind.SUM:
        return where
    return ReductionGoal(where, int(packets.root[number]), PacketKind(kind))


def _names(spec: MeshSpec, goal: TileSet | ReductionGoal, cols: int) -> bool:
    """Whether a header can name what lies inside the mesh."""
    features = spec.features
    if not isinstance(goal, ReductionGoal):
        one = len(goal) == 1
        return one or (features.multicast is not None and _named(goal, features.multicast))
    if goal.kind.name.lower() not in spec.operations() or features.reduction is None:
        return False
    row, col = divmod(goal.root, cols)
    free = features.reduction == "bitmask" or features.reduction_around == "source"
    around = free or (row in goal.operands.rows and col in goal.operands.cols)
    return around and _named(goal.operands, features.reduction)


def _named(where: TileSet, masks: str) -> bool:
    return masks == "bitmask" or (_aligned(where.rows) and _aligned(where.cols))


def _aligned(places: range) -> bool:
    """Whether the places are all numbers that equal the first but in don't-care bits.

    The don't-care bits are then ``last - first``: as many neighbouring bits as the count needs, at
    the height of the step, all of them zero in the first place.
    """
    count, step = len(places), places.step if len(places) > 1 else 1
    powers = count & (count - 1) == 0 and step > 0 and step & (step - 1) == 0
    return powers and places[0] & (places[-1] - places[0]) == 0


def _put(words: Words, lsb: int, values: Words) -> None:
    """Set a field, whose bits are zero, in all flits."""
    word, shift = divmod(lsb, _WORD)
    words[:, word] |= values << np.uint64(shift)
    if shift and word + 1 < words.shape[1]:
        words[:, word + 1] |= values >> np.uint64(_WORD - shift)
