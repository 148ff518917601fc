"""Meshes compiled with the loop that runs them."""

from dataclasses import dataclass
from pathlib import Path

from cosim.spec.adapter import adapter
from cosim.spec.header import FlitLayout
from cosim.spec.mesh import MeshSpec
from cosim.verilated.library import Library
from tlm.errors import InputError

_MOST_NODES = 64


@dataclass(frozen=True, slots=True)
class LoopModel:
    """A mesh of ``rows`` x ``cols`` nodes; the specification says how it is driven.

    With ``waves`` a wave shows the signals inside, too.
    """

    spec: MeshSpec
    rows: int
    cols: int
    waves: bool = False

    def __post_init__(self) -> None:
        self.spec.check_size(self.rows, self.cols)
        if self.rows * self.cols > _MOST_NODES:
            raise InputError(
                f"mesh: found {self.rows}x{self.cols} nodes in Verilog; allowed: {_MOST_NODES}"
            )

    @property
    def name(self) -> str:
        """The mesh and its size, for messages."""
        return f"{self.spec.name} {self.rows}x{self.cols}"

    def layout(self) -> FlitLayout:
        """Its flits."""
        return FlitLayout(self.spec, self.rows, self.cols)

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
            InputError: if the folder of built models cannot be written.
        """
        layout, rtl = self.layout(), self.spec.rtl
        defines = [f"-D{name}={value}" for name, value in sorted(rtl.defines.items())]
        library = Library(
            self.name,
            "blackbox_dut",
            adapter(self.spec, self.rows, self.cols, layout.width),
            Path(__file__).with_name("loop.cpp"),
            {
                "LOOP_NODES": self.rows * self.cols,
                "LOOP_FLIT_BITS": layout.width,
                "LOOP_PAYLOAD_LSB": layout.payload_lsb,
                "LOOP_LAST_BIT": layout.last_bit,
                "LOOP_ELEMENT_BITS": self.spec.features.element_bits,
            },
            self.spec.source_files(),
            [*rtl.verilator_options, *defines],
            self.spec.include_folders(),
            self.waves,
            [Path(__file__).with_name("flits.h")],
        )
        return library.build()
