"""What the tiles of a run do together between two streams, where they send messages: compiled.

The root's last message of a stream's end spreads the maxima: of sums and outputs it sends none. So
its interface goes on with the next blocks, which it sends to itself. Its port takes these before
what others send, but for a message from either side between two of them. Of three messages or more
the later ones wait until the root has added those before, whose buffers they need. Their tiles
bring blocks of their own behind that: a stream costs the blocks' flits twice where the root adds
much, and once where the buffers on the way take an output.
"""

from typing import NamedTuple

from tlm.compiled import compiled, forget_stale, internal

#: Passes over a column from the run's maxima to the sums that are sent.
_PASSES = 6


class Joining(NamedTuple):
    """What the messages of a run cost.

    Attributes:
        messages: That come to the root, one after the other.
        aside: The first of these that comes from the other side than those before.
        stages: Messages on the way of the first of these, one behind the other.
        rise: How many more are on the way of each next one.
        spread: For which the root's interface sends the maxima.
        total: Flits of a column.
        output: Flits of an output.
        total_way: From a column's leaving to its arrival.
        output_way: The same of an output.
        credit: From the freeing of a buffer to the first flit that is sent there.
        room: Flits that the buffers on the way take.
        column: Cycles of a pass over a column.
        deep: The same over an output.
    """

    messages: float
    aside: float
    stages: float
    rise: float
    spread: float
    total: float
    output: float
    total_way: float
    output_way: float
    credit: float
    room: float
    column: float
    deep: float


class Beside(NamedTuple):
    """What a tile of a run does between the ends of its streams, blocks at hand.

    Attributes:
        streams: One after the other.
        depth: Blocks under way at a time.
        each: Blocks of keys of a stream.
        scores: Cycles of an item's first product.
        softmax: Of its passes.
        product: Of its second product.
        q: Flits of a block.
        k: The same.
        v: The same.
        near: From a flit's leaving to its arrival at the same tile.
    """

    streams: float
    depth: float
    each: float
    scores: float
    softmax: float
    product: float
    q: float
    k: float
    v: float
    near: float


class Joins(NamedTuple):
    """Cycles of all streams' ends but the last one's.

    Attributes:
        transfer: As the tile has them whose output leaves last, of its interface.
        vector: As the root has them, of its vector engine.
        last: Of a single end, the last of these.
    """

    transfer: float
    vector: float
    last: float


class _End(NamedTuple):
    """Since the maxima have left the root: until all outputs have left, and are added."""

    left: float
    added: float


_Span = tuple[float, float]


class _Blocks(NamedTuple):
    """From when until when blocks go through the root's port, in their order."""

    first: _Span
    second: _Span
    third: _Span
    fourth: _Span


@compiled
def joins(of: Joining, beside: Beside) -> Joins:
    """How long a run's joining takes between streams."""
    # From the last maximum to the end of its spread: of another tile, or the root's own. It finds
    # all others there.
    adds = min(of.stages, 1.0) + (of.messages - 1) * of.rise
    late = of.total_way + (1 + adds) * of.column + of.spread
    own = (1 + of.messages) * of.column + of.spread
    never, made = (0.0, 0.0), 0.0
    ends = beside.streams - 1
    if beside.depth == 1:
        # The stream's last product goes on beside that.
        made = max(0.0, beside.product - own)
    alone = _end(of, made, _Blocks(never, never, never, never))
    # The root's next values wait for the product with those before, which goes on from its own
    # maxima. If those of another tile come later, that ends so much sooner.
    q, k, v, asked = beside.q, beside.k, beside.v, beside.product - own
    first = _end(of, made, _of_stream(beside, 0.0))
    if asked > 0:
        transfer = late + first.left + q + beside.each * (k + v)
        asked -= max(0.0, transfer - own - first.added - beside.each * beside.softmax)
        first = _end(of, made, _of_stream(beside, asked))
    if beside.depth == 1:
        # The next stream's scores do not wait for the root.
        scored = beside.near + q + k + beside.scores
        waits = max(late + first.left, own + first.added - scored, beside.product) - beside.product
        # Behind the last keys come scores and passes, or their values.
        behind = max(0.0, beside.near + beside.scores + beside.softmax - v)
        return Joins(ends * (late + first.left + behind), ends * waits, 0.0)
    # Of two streams that end one after the other the next blocks are another stream's first and
    # later ones of their own. Behind the last blocks there are none.
    second, busy = first, max(ends - 2, 0.0)
    if beside.each > 1:
        busy, start = max(ends - 1, 0.0), max(beside.near + k, asked)
        values, again = (start, start + v), (start + v, start + v + k)
        second = _end(of, made, _Blocks((0.0, beside.near + k), values, again, never))
    left = (first.left + second.left) / 2 * busy + alone.left * (ends - busy)
    added = (first.added + second.added) / 2 * busy + alone.added * (ends - busy)
    return Joins(ends * late + left, ends * own + added, late + alone.left)


@internal
def _of_stream(beside: Beside, asked: float) -> _Blocks:
    """A stream's first blocks at the root's port: values are ``asked`` for not before then."""
    queries = beside.near + beside.q
    keys = queries + beside.k
    start = max(keys, asked)
    end = start + beside.v
    again = end + beside.k if beside.depth == 1 and beside.each > 1 else end
    return _Blocks((0.0, queries), (queries, keys), (start, end), (end, again))


@internal
def _end(of: Joining, made: float, blocks: _Blocks) -> _End:
    """A stream's end while blocks go through the root's port, outputs being there from then on."""
    ready = of.total_way + _PASSES * of.column
    outputs = max(ready, made) + of.deep
    vector = max(_PASSES * of.column, made) + of.deep
    # The root has two buffers, which messages have in turn. One behind another from the same side
    # waits for a turn more. Of the first two the nearer tile's comes first, whatever their order.
    nearer = of.aside > 1 and of.rise == 0
    foremost = 1 if nearer else 0
    port = older = newer = one = other = left = 0.0
    for number in range(int(of.messages)):
        stages = of.stages + number * of.rise
        leaves = max(ready + stages * (of.total_way + of.column), older)
        comes = leaves + of.total_way - of.total
        if number == 0 and nearer:
            other = comes = _turn(comes, blocks) + of.total
        waits = number != of.aside and number != foremost
        port = max(_turn(max(comes, port) if waits else comes, blocks), port) + of.total
        if number == 0:
            one = port
        elif number == 1 and not nearer:
            other = port
        vector = max(vector, port) + of.column
        older, newer = newer, vector + of.credit
    port = older = newer = 0.0
    for number in range(int(of.messages)):
        stages = of.stages + number * of.rise
        leaves = max(outputs + stages * (of.output_way + of.deep), older)
        # Behind the same tile's sum, which may have the buffer that it needs.
        behind = one if number == 0 else other if number == 1 else 0.0
        comes = max(leaves + of.output_way - of.output, behind)
        waits = number != of.aside and number != foremost
        port = max(_turn(max(comes, port) if waits else comes, blocks), port) + of.output
        if of.output > of.room:
            left = max(left, port - of.room)
        elif of.total + of.output > of.room:
            left = max(left, behind)
        left = max(left, leaves + of.output)
        vector = max(vector, port) + of.deep
        older, newer = newer, vector + of.credit
    return _End(left, vector)


@internal
def _turn(comes: float, blocks: _Blocks) -> float:
    """When a message goes through the port: behind the block that does when it comes."""
    for begin, end in blocks:
        if begin <= comes < end:
            return end
    return comes


forget_stale(joins)
