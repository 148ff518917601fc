"""Runs of a command that differ in some options, and what changes from one to the other."""

from wafertlm.compare.gates import gates_of
from wafertlm.compare.run import Comparison, run_comparison, run_variant
from wafertlm.compare.variants import Variant, variants

__all__ = ["Comparison", "Variant", "gates_of", "run_comparison", "run_variant", "variants"]
