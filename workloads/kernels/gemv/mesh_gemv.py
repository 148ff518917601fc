"""MeshGEMV: partial sums are added along a K-tree (WaferLLM, section 6).

A column is cut into groups. In each, chains run from both ends to the root in the middle; another
chain joins the roots, in their middle, and the sum is multicast from there. More levels do this
again. On P tiles in G groups of g, with r = floor(g/2) and the root at floor(G/2) g + r, there are
max(r, g-1-r) + max(floor(G/2), G-1-floor(G/2)) stages in which a core adds and passes on.
"""

from dataclasses import replace

from workloads.kernels.gemm.plan import Shape
from workloads.kernels.gemv.plan import GemvPlan, plan_gemv
from workloads.kernels.parts.line import default_groups, k_tree
from workloads.machine.place import Place


def plan_mesh_gemv(
    shape: Shape, place: Place, groups: tuple[int, ...] | None = None, method: str = "k-tree"
) -> GemvPlan:
    """Plan MeshGEMV.

    Args:
        shape: (1, N, K).
        place: The grid.
        groups: Groups of each level but the last; by default two levels, about the square root.
        method: Another way than a K-tree, to compare with it; its root is in the middle.

    Raises:
        InputError: if the shape, the groups or the method do not fit.
    """
    plan = plan_gemv(shape, place)
    if method != "k-tree":
        return replace(plan, method=place.method(method), root=plan.rows // 2)
    groups = default_groups(plan.rows) if groups is None else groups
    root = k_tree(plan.rows, groups)[-1].roots[0]
    return replace(plan, method=method, root=root, groups=groups)
