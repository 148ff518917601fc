"""MeshGEMV: partial sums are added along a K-tree (WaferLLM, section 6).

A column is cut into groups. In each, chains run from both ends to the root in the middle; another
chain joins the roots, in their middle, and the sum is multicast from there. More levels do this
again. On P tiles in G groups of g, with r = floor(g/2) and the root at floor(G/2) g + r, there are
max(r, g-1-r) + max(floor(G/2), G-1-floor(G/2)) stages in which a core adds and passes on.
"""

from tlm.program import Program
from workloads.kernels.gemv import GemvPlan, gemv
from workloads.kernels.line import default_groups, k_tree


def mesh_gemv(plan: GemvPlan, groups: tuple[int, ...] | None = None) -> Program:
    """Program of MeshGEMV.

    Args:
        plan: Blocks and cycles.
        groups: Groups of each level but the last; by default two levels, about the square root.
    """
    groups = default_groups(plan.rows) if groups is None else groups
    root = k_tree(plan.rows, groups)[-1].roots[0]
    return gemv(plan, "k-tree", root, groups)
