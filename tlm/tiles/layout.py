"""Where a program's buffers lie in a tile's scratchpad, and in which order of words.

The order of a block's words is what works on it wants (rtl/tile/descriptors.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tlm.compute.base import ceil_div
from tlm.errors import InputError
from tlm.program import OffChip, Program
from tlm.program.data import Buffer, Gemm, Vector
from tlm.program.operations import Transfer, Work

WORD_BITS = 64
SUM_BITS = 32


class Order(Enum):
    """How the elements of a block lie in words.

    - LEFT: panels of rows, as A of an output-stationary product.
    - PACKED: rows of operands, as A of a weight-stationary product.
    - RIGHT: panels of columns, as B of a product.
    - SUMS: rows of 32-bit elements.
    - COLUMN: one 32-bit element a row, in both halves of a word.
    """

    LEFT = "left operand of a product"
    PACKED = "left operand of a product, made by the vector engine"
    RIGHT = "right operand of a product"
    SUMS = "rows of sums"
    COLUMN = "column of sums"


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """A buffer in the scratchpad.

    Attributes:
        buffer: The block.
        order: Its words' order.
        address: Its first word.
        padded: Rows and columns with those that fill the array's panels.
        row_words: Distance of rows of sums, of packed operands or of a column, in words.
        in_tile: It lies in the scratchpad; else in off-chip memory, at an address of its own there.
    """

    buffer: Buffer
    order: Order
    address: int
    padded: tuple[int, int]
    row_words: int
    in_tile: bool = True

    @property
    def words(self) -> int:
        """Words of the block, those of padding among them."""
        rows, columns = self.padded
        if self.order in (Order.SUMS, Order.COLUMN):
            return rows * self.row_words
        if self.order is Order.LEFT:  # a word holds as many rows of a column
            rows, columns = columns, rows
        return rows * ceil_div(columns * self.buffer.bits, WORD_BITS)

    @property
    def sent(self) -> tuple[int, int]:
        """Rows, and words of each, that a transfer of the block carries."""
        if self.order in (Order.SUMS, Order.PACKED):
            return self.buffer.rows, ceil_div(self.buffer.columns * self.buffer.bits, WORD_BITS)
        return 1, self.words

    @property
    def sent_words(self) -> int:
        """Words that a transfer of the block carries: of rows of sums none of padding."""
        rows, words = self.sent
        return rows * words


def place_buffers(
    program: Program, operand_bits: int, banks: int, words: int
) -> dict[str, BufferPlace]:
    """Give every buffer an order, by what works on it, and an address.

    Buffers in off-chip memory that no operation loads or stores lie in the scratchpad like the
    others. Those that a pass reads together begin at banks apart (`_first_banks`). Rows of sums lie
    apart (`_apart`), unless they fit only if they do not.

    Args:
        program: The program.
        operand_bits: Bits of an operand of the array.
        banks: Banks of the scratchpad.
        words: Its words.

    Raises:
        InputError: for buffers that tiles in Verilog cannot hold.
    """
    orders = _orders(program)
    steps = _row_steps(program, orders, operand_bits, banks)
    places = _placed_in_turn(program, orders, operand_bits, banks, steps)
    if used_words(places) <= words:
        return places
    dense = _placed_in_turn(program, orders, operand_bits, banks, {})
    return dense if used_words(dense) <= words else places


def _placed_in_turn(
    program: Program,
    orders: Mapping[str, Order],
    operand_bits: int,
    banks: int,
    steps: Mapping[str, int],
) -> dict[str, BufferPlace]:
    """One buffer behind the other, those of ``steps`` with their rows apart."""
    moved = {each.block for each in program.operations() if isinstance(each, OffChip)}
    size, first = WORD_BITS // operand_bits, _first_banks(program, orders, banks)
    places: dict[str, BufferPlace] = {}
    address = 0
    for name, buffer in program.buffers.items():
        order = orders[name]
        _check_bits(name, buffer, order, operand_bits)
        if buffer.within is None and name in moved:
            places[name] = replace(_placed(buffer, order, 0, size), in_tile=False)
        elif buffer.within is None:
            if name in first:
                address += (first[name] - address) % banks
            places[name] = _placed(buffer, order, address, size)
            if name in steps:
                places[name] = _apart(places[name], steps[name], banks)
            address += places[name].words
    for name, buffer in program.buffers.items():
        if buffer.within is not None:
            places[name] = _part(name, buffer, orders[name], places[buffer.within])
    return places


def _first_banks(program: Program, orders: Mapping[str, Order], banks: int) -> dict[str, int]:
    """Banks at which blocks begin that passes of two operands, word by word, read and write.

    Three streams then go through the banks side by side, the results a few words behind. Where the
    second operand's words stand at the results' bank, one of both waits, and the others with it. So
    they meet again at the next word: once something has disturbed such a pass, it can take twice
    its cycles. Three quarters of the banks apart, it is far from both, for rows of any length.
    """
    first: dict[str, int] = {}
    for operation in program.operations():
        task = operation.task if isinstance(operation, Work) else None
        if not isinstance(task, Vector) or task.b is None or orders[task.b] is Order.COLUMN:
            continue
        one, two, out = (
            program.buffers[name].within or name for name in (task.a, task.b, task.out)
        )
        if two == out:
            one, two = two, one
        bank = first.setdefault(one, 0)
        first.setdefault(out, bank)
        first.setdefault(two, 3 * banks // 4 if bank == 0 else 0)
    return first


def _row_steps(
    program: Program, orders: Mapping[str, Order], operand_bits: int, banks: int
) -> dict[str, int]:
    """Words from row to row of what works on blocks of sums: of a fold, or of a row's elements.

    What a pass reads or writes counts before what a product writes. If a product adds to it fold by
    fold, and these fill no more than a quarter of the banks, they count. Blocks that move to or
    from off-chip memory have no gaps.
    """
    fold = WORD_BITS // operand_bits * SUM_BITS // WORD_BITS
    whole = {name: program.buffers[name].within or name for name in program.buffers}
    made, passed, added = dict[str, int](), dict[str, int](), dict[str, int]()
    moved = set[str]()
    for operation in program.operations():
        task = operation.task if isinstance(operation, Work) else None
        if isinstance(task, Gemm):
            few = orders[task.a] is Order.PACKED and fold <= banks // 4
            (added if few else made)[whole[task.c]] = fold
        elif isinstance(task, Vector):
            for name in (task.a, task.b, task.out):
                if name is not None and orders[name] is Order.SUMS:
                    block = program.buffers[whole[name]]
                    passed[whole[name]] = ceil_div(block.columns * SUM_BITS, WORD_BITS)
        elif isinstance(operation, OffChip):
            moved |= {whole[name] for name in (operation.source, operation.target) if name}
    steps = made | passed | added
    return {name: step for name, step in steps.items() if name not in moved}


def _apart(place: BufferPlace, step: int, banks: int) -> BufferPlace:
    """Rows of sums as far apart that a row's words follow those of the row before, bank by bank.

    Streams that ask one bank after the other are soon out of each other's way. One that comes back
    to few banks meets the others there row by row: passes of two words of every four were up to
    half as fast beside each other, and sums in a quarter of the banks left no cycle for others.
    """
    return replace(place, row_words=place.row_words + (step - place.row_words) % banks)


def _orders(program: Program) -> dict[str, Order]:
    """The order of every buffer: those between which blocks are sent have the same one."""
    same: dict[str, set[str]] = {name: {name} for name in program.buffers}
    wanted: dict[str, set[Order]] = {name: set() for name in program.buffers}
    for operation in program.operations():
        if isinstance(operation, Transfer):
            if operation.source is not None and operation.target is not None:
                joint = same[operation.source] | same[operation.target]
                same |= dict.fromkeys(joint, joint)
        elif not isinstance(operation, Work):
            continue
        elif isinstance(operation.task, Gemm):
            if operation.task.turned:
                raise InputError(
                    f"buffer '{operation.task.b}': found a turned operand of a product; allowed: "
                    "operands in the array's order of words"
                )
            wanted[operation.task.a].add(Order.LEFT)
            wanted[operation.task.b].add(Order.RIGHT)
            wanted[operation.task.c].add(Order.SUMS)
        elif isinstance(operation.task, Vector):
            out = program.buffers[operation.task.out]
            if out.bits < SUM_BITS:
                wanted[operation.task.out].add(Order.PACKED)
    orders = {}
    for name, buffer in program.buffers.items():
        found = set().union(*(wanted[other] for other in same[name]))
        if Order.PACKED in found:
            found.discard(Order.LEFT)
        if len(found) > 1:
            listed = " and ".join(sorted(order.value for order in found))
            raise InputError(f"buffer '{name}': found {listed}; allowed: one of them")
        default = Order.COLUMN if buffer.columns == 1 else Order.SUMS
        orders[name] = found.pop() if found else default
    return orders


def _check_bits(name: str, buffer: Buffer, order: Order, operand_bits: int) -> None:
    bits = SUM_BITS if order in (Order.SUMS, Order.COLUMN) else operand_bits
    if buffer.bits != bits:
        raise InputError(
            f"buffer '{name}', {order.value}: found {buffer.bits} bits; allowed: {bits}"
        )


def _placed(buffer: Buffer, order: Order, address: int, size: int) -> BufferPlace:
    """A buffer of its own, padded to whole panels of ``size`` rows or columns."""
    rows, columns = buffer.shape
    if order is Order.COLUMN:
        return BufferPlace(buffer, order, address, (rows, 1), 1)
    if order in (Order.LEFT, Order.SUMS):
        rows = ceil_div(rows, size) * size
    if order is not Order.LEFT:
        columns = ceil_div(columns, size) * size
    bits = buffer.bits
    return BufferPlace(buffer, order, address, (rows, columns), ceil_div(columns * bits, WORD_BITS))


def _part(name: str, part: Buffer, order: Order, whole: BufferPlace) -> BufferPlace:
    """A part of a block of sums: some of its rows, or whole words of its only row."""
    columns, elements = whole.buffer.columns, WORD_BITS // SUM_BITS
    row, column = divmod(part.offset, columns)
    rows = (part.columns, column) == (columns, 0)
    words = whole.buffer.rows == 1 and part.rows == 1 and part.columns % elements == 0
    if not (order is whole.order is Order.SUMS and (rows or (words and column % elements == 0))):
        raise InputError(
            f"buffer '{name}': found {part.rows} x {part.columns} elements from element "
            f"{part.offset} of '{part.within}' on; allowed: whole rows, or whole words of one row, "
            "of sums"
        )
    address = whole.address + row * whole.row_words + column // elements
    return BufferPlace(part, order, address, part.shape, whole.row_words)


def used_words(places: Mapping[str, BufferPlace]) -> int:
    """Words of a scratchpad up to the end of the last buffer."""
    inside = (place for place in places.values() if place.in_tile)
    return max((place.address + place.words for place in inside), default=0)
