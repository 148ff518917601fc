"""MeshGEMV: partial sums are added along a K-tree (WaferLLM, section 6).

A column is cut into groups. In each, chains run from both ends to the root in the middle; another
chain joins the roots, in their middle, and the sum is multicast from there. More levels do this
again. On P tiles in G groups of g, with r = floor(g/2) and the root at floor(G/2) g + r, there are
max(r, g-1-r) + max(floor(G/2), G-1-floor(G/2)) stages in which a core adds and passes on.

Where cores stream sums, a word passes a stage while the next one comes; else a part of the sums is
stored before it goes on.
"""

from dataclasses import replace

from tlm.errors import InputError
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemv.plan import GemvPlan, plan_gemv, streamed
from workloads.kernels.parts.line import default_groups, k_tree
from workloads.kernels.parts.streams import (
    StreamedSum,
    Tree,
    best_tree,
    streamed_all_reduce_cycles,
    tree_of,
    tree_of_groups,
    whole_line,
)
from workloads.machine.place import Place


def plan_mesh_gemv(
    shape: Shape, place: Place, groups: tuple[int, ...] | None = None, method: str | None = None
) -> GemvPlan:
    """Plan MeshGEMV.

    Args:
        shape: (1, N, K).
        place: The grid.
        groups: Groups of each level but the last; by default two levels: those of the least latency
            if sums are streamed, else about the square root.
        method: ``stream-tree`` where cores stream sums, else ``k-tree``; or another way, to compare
            with it, whose root is in the middle.

    Raises:
        InputError: if the shape, the groups or the method do not fit.
    """
    plan = plan_gemv(shape, place)
    method = method or own_method(place)
    if method == "stream":
        return streamed(plan, place, whole_line(plan.rows, plan.rows // 2))
    if method == "stream-tree":
        trees = _trees(plan.rows, place, groups)
        plans = [streamed(plan, place, tree) for tree in trees]
        return plans[0] if len(plans) == 1 else min(plans, key=lambda each: _cycles(each, place))
    if method != "k-tree":
        return replace(plan, method=place.method(method), root=plan.rows // 2)
    groups = default_groups(plan.rows) if groups is None else groups
    root = k_tree(plan.rows, groups)[-1].roots[0]
    return replace(plan, method=method, root=root, groups=groups)


def own_method(place: Place) -> str:
    """How sums come together without a choice: by streams where cores stream them."""
    return "k-tree" if place.relay_cycles is None else "stream-tree"


def _trees(length: int, place: Place, groups: tuple[int, ...] | None) -> list[Tree]:
    """That of some groups; else that of the least latency, where a stage's does not depend on it.

    Else those among which whole sums decide.
    """
    if groups is None and place.software.stage_cycles is None:
        return [tree_of(length, size) for size in range(length, 0, -1)]
    if groups is None:
        return [best_tree(length, place.software.stage_cycles or 0, place.timing.hop_cycles)]
    if len(groups) > 1:
        found = ",".join(map(str, groups))
        raise InputError(f"--groups: found {found}; allowed of streamed sums: one number")
    return [tree_of_groups(length, *groups or (1,))]


def _cycles(plan: GemvPlan, place: Place) -> int:
    reduction = plan.reduction
    assert isinstance(reduction, StreamedSum)
    return streamed_all_reduce_cycles(reduction, place.timing)
