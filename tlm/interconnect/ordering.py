"""Which reductions may be in flight together, so that their operands cannot block each other.

Two reductions may be in flight together only if (a) the same tiles bring their operands, and all of
these issue them in the same order (the roots may differ), or (b) their trees share no link. The
buffer of a tile's own operands counts as a link from the tile to itself.

A unit that takes the first in line (`zero_load.UNIT_CHOICES`) keeps itself for an operand that is
late, whatever buffers hold. There (a) asks for the same root as well, and (b) for trees without a
common router.
"""

from collections.abc import Iterator

import numpy as np

from tlm.errors import InputError
from tlm.interconnect.packets import Int64s, Packets, TileSet

#: From one node to the next; from a node to itself: where its tile's operands come in.
Link = tuple[int, int]

_RULE = (
    "reductions in flight together need the same operand tiles, in the same order at each, "
    "or trees without a common link"
)
_RULE_OF_FIRST = (
    "where units take the first in line, reductions in flight together need the same operand "
    "tiles, in the same order at each, and the same root, or trees without a common router"
)


def tree_links(operands: TileSet, root: int, cols: int, *, y_first: bool = False) -> set[Link]:
    """Links that a reduction's operands cross: all dimension-ordered ways to the root.

    Args:
        operands: The tiles that bring one.
        root: Node number of the tile that gets the result.
        cols: Columns of the mesh.
        y_first: Whether packets go along the column first.
    """
    links = {(node, node) for node in operands.nodes(cols)}
    row, col = divmod(root, cols)
    if y_first:
        for line in operands.cols:
            links |= {(a * cols + line, b * cols + line) for a, b in _ways(operands.rows, row)}
        links |= {(row * cols + a, row * cols + b) for a, b in _ways(operands.cols, col)}
    else:
        for line in operands.rows:
            links |= {(line * cols + a, line * cols + b) for a, b in _ways(operands.cols, col)}
        links |= {(a * cols + col, b * cols + col) for a, b in _ways(operands.rows, row)}
    return links


def _ways(places: range, goal: int) -> Iterator[Link]:
    """Steps on a line from the outermost places on either side to the goal."""
    yield from ((at, at + 1) for at in range(places[0], goal))
    yield from ((at, at - 1) for at in range(places[-1], goal, -1))


def check_reductions(
    packets: Packets, cols: int, *, y_first: bool = False, unit_choice: str = "complete"
) -> None:
    """Hold that any of the reductions may be in flight together.

    Each node issues its packets in the order of their numbers.

    Args:
        packets: The reductions, among others.
        cols: Columns of the mesh.
        y_first: Whether packets go along the column first.
        unit_choice: Which reductions ask for a unit, one of `zero_load.UNIT_CHOICES`.

    Raises:
        InputError: naming two reductions that break the rule by their joint numbers, or one that
            lacks an operand.
    """
    numbers = np.nonzero(packets.reduces)[0]
    unlike = packets.flits[numbers] != packets.flits[packets.joint[numbers]]
    if unlike.any():
        number = numbers[unlike][0]
        raise InputError(
            f"reduction of packet {packets.joint[number]}: found operands of "
            f"{packets.flits[packets.joint[number]]} and {packets.flits[number]} flits; allowed: "
            "equal lengths"
        )
    firsts = numbers[packets.joint[numbers] == numbers]
    groups: dict[TileSet, list[int]] = {}
    for joint in firsts.tolist():
        groups.setdefault(packets.tiles(joint), []).append(joint)
    for operands, joints in groups.items():
        _check_order(packets, operands, cols, numbers, np.array(joints))
    if unit_choice == "first":
        _check_routers(packets, firsts, cols, y_first=y_first)
    else:
        _check_links(packets, groups, cols, y_first=y_first)


def _check_order(
    packets: Packets, operands: TileSet, cols: int, numbers: Int64s, joints: Int64s
) -> None:
    """Each tile of a group brings one operand of each reduction, all in the same order."""
    own = numbers[np.isin(packets.joint[numbers], joints)]
    own = own[np.argsort(packets.source[own], kind="stable")]
    nodes = np.array(operands.nodes(cols))
    issued, source = packets.joint[own], packets.source[own]
    for joint, count in zip(*np.unique(issued, return_counts=True), strict=True):
        if count != len(nodes):
            raise InputError(
                f"reduction of packet {joint}: found operands of {count} tiles; allowed: one of "
                f"each of its {len(nodes)} tiles"
            )
    expected = np.repeat(nodes, len(joints))
    if (source != expected).any():
        at = np.nonzero(source != expected)[0][0]
        raise InputError(
            f"reduction of packet {issued[at]}: found an operand of node {source[at]}; allowed: "
            f"one of each of the nodes {', '.join(map(str, nodes))}"
        )
    turns = issued.reshape(len(nodes), len(joints))
    wrong = np.argwhere(turns != turns[0])
    if len(wrong):
        node, turn = wrong[0]
        raise InputError(
            f"reductions of packets {turns[0, turn]} and {turns[node, turn]}: issued in another "
            f"order by node {nodes[node]} than by node {nodes[0]}; {_RULE}"
        )


def _check_links(
    packets: Packets, groups: dict[TileSet, list[int]], cols: int, *, y_first: bool
) -> None:
    """Trees of different groups share no link."""
    owners: dict[Link, tuple[TileSet, int]] = {}
    for operands, joints in groups.items():
        roots, where = np.unique(packets.root[joints], return_index=True)
        for root, index in zip(roots.tolist(), where.tolist(), strict=True):
            for link in sorted(tree_links(operands, root, cols, y_first=y_first)):
                owner, other = owners.setdefault(link, (operands, joints[index]))
                if owner != operands:
                    at = (
                        f"node {link[0]}'s own operands"
                        if link[0] == link[1]
                        else (f"the link from node {link[0]} to node {link[1]}")
                    )
                    raise InputError(
                        f"reductions of packets {other} and {joints[index]}: of different tiles, "
                        f"both need {at}; {_RULE}"
                    )


def _check_routers(packets: Packets, firsts: Int64s, cols: int, *, y_first: bool) -> None:
    """Trees of other tiles, or to another root, share no router."""
    owners: dict[int, tuple[TileSet, int, int]] = {}
    seen: set[tuple[TileSet, int]] = set()
    for joint in firsts.tolist():
        operands, root = packets.tiles(joint), int(packets.root[joint])
        if (operands, root) in seen:
            continue
        seen.add((operands, root))
        links = tree_links(operands, root, cols, y_first=y_first)
        for node in sorted({root, *(end for link in links for end in link)}):
            owner, to, other = owners.setdefault(node, (operands, root, joint))
            if (owner, to) != (operands, root):
                what = "of different tiles" if owner != operands else "to different roots"
                raise InputError(
                    f"reductions of packets {other} and {joint}: {what}, both need the unit of "
                    f"node {node}; {_RULE_OF_FIRST}"
                )
