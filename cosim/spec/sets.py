"""Sets of tiles in messages: as a trace or ``--group`` names them, and as a specification does."""

from cosim.spec.mesh import MeshSpec
from tlm.interconnect.packets import ReductionGoal, TileSet


def in_words(goal: TileSet | ReductionGoal, cols: int) -> str:
    """A packet's tiles, rows and columns half-open: ``multicast to rows 0:3, columns 0:1``.

    Args:
        goal: Where it goes, or which reduction it is an operand of.
        cols: Columns of the mesh.
    """
    if isinstance(goal, ReductionGoal):
        row, col = divmod(goal.root, cols)
        return f"{goal.kind.name.lower()} of {tiles(goal.operands)} to tile {row},{col}"
    return f"{'multicast' if len(goal) > 1 else 'unicast'} to {tiles(goal)}"


def tiles(where: TileSet) -> str:
    """Rows and columns: first, first that is none of them, and the step if that is not 1."""
    return f"rows {_places(where.rows)}, columns {_places(where.cols)}"


def allowed(spec: MeshSpec, goal: TileSet | ReductionGoal) -> str:
    """What multicasts, or reductions, headers can name, in the keys of the specification."""
    reduction = isinstance(goal, ReductionGoal)
    feature = "reduction" if reduction else "multicast"
    masks = spec.features.reduction if reduction else spec.features.multicast
    if masks is None:
        return f"allowed: none, as [features] has no {feature}"
    operation = goal.kind.name.lower() if isinstance(goal, ReductionGoal) else feature
    if operation not in spec.operations():
        return f"allowed by the values of operation: {', '.join(spec.operations())}"
    key = f'allowed with {feature} = "{masks}"'
    if masks == "bitmask":
        return f"{key}: rows and columns of the mesh"
    sets = "1, 2, 4, 8, ... rows and columns that equal row and col but in the bits of a mask"
    rooted = reduction and spec.features.reduction_around == "root"
    around = ', the root one of the tiles (reduction_around = "root")' if rooted else ""
    return f"{key}: {sets}{around}"


def _places(side: range) -> str:
    step = f":{side.step}" if side.step > 1 else ""
    return f"{side.start}:{side.stop}{step}"
