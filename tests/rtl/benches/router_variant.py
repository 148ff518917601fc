"""Parameters of a router (rtl/noc/router.sv) and the form of its flits (rtl/noc/noc_pkg.sv)."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from tests.rtl.benches.routes import Routes


@dataclass(frozen=True)
class RouterVariant:
    """A router's parameters; by default all features, in one stage and without output buffers."""

    rows: int = 3
    cols: int = 3
    depth: int = 5
    output_depth: int = 0
    payload_bits: int = 16
    stages: int = 1
    y_first: bool = False
    multicast: bool = True
    reduction: bool = True
    cut_through: bool = True
    loopback: bool = True
    element_bits: int = 8
    reduce_stages: int = 1

    @classmethod
    def of_plan(cls) -> "RouterVariant":
        """The variant under test, from ``$WAFERTLM_PLAN``."""
        return cls(**json.loads(Path(os.environ["WAFERTLM_PLAN"]).read_text()))

    def plan(self) -> dict[str, int]:
        """What `of_plan` reads."""
        return asdict(self)

    def parameters(self) -> dict[str, int]:
        """Parameters of the module."""
        return {
            "Rows": self.rows,
            "Cols": self.cols,
            "FifoDepth": self.depth,
            "OutputDepth": self.output_depth,
            "PayloadWidth": self.payload_bits,
            "Stages": self.stages,
            "YFirst": int(self.y_first),
            "Multicast": int(self.multicast),
            "Reduction": int(self.reduction),
            "CutThrough": int(self.cut_through),
            "Loopback": int(self.loopback),
            "ElementWidth": self.element_bits,
            "ReduceStages": self.reduce_stages,
        }

    @property
    def latency_cycles(self) -> int:
        """From the cycle in which a flit is accepted to that in which it is offered."""
        return self.stages + (self.output_depth > 0)

    @cached_property
    def routes(self) -> Routes:
        """Routes of the mesh that the router believes to be in."""
        return Routes(self.rows, self.cols, self.y_first, self.loopback)

    @cached_property
    def count_bits(self) -> int:
        """Bits of a count of flits."""
        return self.depth.bit_length()

    @cached_property
    def flit_bits(self) -> int:
        """Bits of a flit."""
        return sum(self._fields.values())

    @cached_property
    def _fields(self) -> dict[str, int]:
        """Widths of a flit's fields from the low end."""
        widths = {"payload": self.payload_bits}
        widths |= {"col": max((self.cols - 1).bit_length(), 1)}
        widths |= {"row": max((self.rows - 1).bit_length(), 1)}
        if self.multicast or self.reduction:
            widths |= {"cols": self.cols, "rows": self.rows}
            if self.cut_through:
                widths |= {"length": self.count_bits}
        if self.reduction:
            widths |= {"maximum": 1, "reduce": 1}
        if self.multicast:
            widths |= {"multicast": 1}
        return widths | {"last": 1}

    @cached_property
    def reduce_bit(self) -> int:
        """The bit that is set in an operand's flits; none without reductions."""
        return 1 << self.flit_bits - 2 - self.multicast if self.reduction else 0

    def pack(self, values: Mapping[str, int]) -> int:
        """A flit; values are cut to their fields, and a field that is compiled out is left out."""
        word, lsb = 0, 0
        for name, width in self._fields.items():
            word |= (values[name] & (1 << width) - 1) << lsb
            lsb += width
        return word

    def combine(self, payloads: list[int], maximum: bool) -> int:
        """Element by element the wrapped sum, or the largest as signed numbers."""
        size, word = 1 << self.element_bits, 0
        for lsb in range(0, self.payload_bits, self.element_bits):
            elements = [payload >> lsb & size - 1 for payload in payloads]
            signed = [e - size if 2 * e >= size else e for e in elements]
            word |= ((max(signed) if maximum else sum(signed)) & size - 1) << lsb
        return word
