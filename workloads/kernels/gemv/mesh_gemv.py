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
from workloads.kernels.parts.streams import Tree, best_tree, tree_of_groups, whole_line
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
        return streamed(plan, place, _tree(plan.rows, place, groups))
    if method != "k-tree":
        return replace(plan, method=place.method(method), root=plan.rows // 2)
    groups = default_groups(plan.rows) if groups is None else groups
    root = k_tree(plan.rows, groups)[-1].roots[0]
    return replace(plan, method=method, root=root, groups=groups)


def own_method(place: Place) -> str:
    """How sums come together without a choice: by streams where cores stream them."""
    return "k-tree" if place.relay_cycles is None else "stream-tree"


def _tree(length: int, place: Place, groups: tuple[int, ...] | None) -> Tree:
    if groups is None:
        return best_tree(length, place.software.stage_cycles or 0, place.timing.hop_cycles)
    if len(groups) > 1:
        found = ",".join(map(str, groups))
        raise InputError(f"--groups: found {found}; allowed of streamed sums: one number")
    return tree_of_groups(length, *groups or (1,))
