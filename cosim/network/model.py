"""Meshes compiled with the loop that runs them."""

from dataclasses import dataclass
from pathlib import Path

from cosim.spec.adapter import SizedMesh
from cosim.verilated.library import Library
from tlm.errors import InputError

_MOST_NODES = 64
_DRIVER = Path(__file__).with_name("loop.cpp")


@dataclass(frozen=True, slots=True)
class LoopModel(SizedMesh):
    """A mesh for this process; with ``waves`` a wave shows the signals inside, too."""

    waves: bool = False

    def __post_init__(self) -> None:
        SizedMesh.__post_init__(self)
        if self.rows * self.cols > _MOST_NODES:
            raise InputError(
                f"mesh: found {self.rows}x{self.cols} nodes in Verilog; allowed: {_MOST_NODES}"
            )

    def build(self) -> Path:
        """The library of the model, from the cache if it is there.

        Raises:
            SimulationError: carrying the end of the tools' output.
            InputError: if the folder of built models cannot be written.
        """
        layout = self.layout()
        return Library(
            name=self.name,
            top="blackbox_dut",
            text=self.adapter(),
            driver=_DRIVER,
            headers=[_DRIVER.with_name("flits.h")],
            defines={
                "LOOP_NODES": self.rows * self.cols,
                "LOOP_FLIT_BITS": layout.width,
                "LOOP_PAYLOAD_LSB": layout.payload_lsb,
                "LOOP_LAST_BIT": layout.last_bit,
                "LOOP_ELEMENT_BITS": self.spec.features.element_bits,
                "LOOP_REDUCED_BITS": self.spec.data_law.reduced_bits,
            },
            sources=self.spec.source_files(),
            flags=self.spec.rtl.flags(),
            include_folders=self.spec.include_folders(),
            waves=self.waves,
            nodes=self.rows * self.cols,
        ).build()
