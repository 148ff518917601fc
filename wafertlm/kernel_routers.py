"""Somebody's own routers under `wafertlm kernel`: what they carry, and what was found of them."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from calibration.blackbox.campaign import OwnCalibration, calibration_file, load_own
from cosim.spec.header import FlitLayout
from cosim.spec.mesh import MeshSpec, load_spec
from tlm.calibrated import combined_hash
from tlm.errors import InputError
from tlm.interconnect import packets
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.program import Multicast, Program, Reduce, Send, Transfer
from tlm.program.operations import Way


@dataclass(frozen=True, slots=True)
class OwnRouters:
    """A mesh of somebody else's routers, and what its calibration found."""

    spec: MeshSpec
    found: OwnCalibration

    @property
    def timing(self) -> NocTiming:
        """As identified."""
        return self.found.timing()

    @property
    def combines(self) -> bool:
        """Whether they reduce."""
        return self.spec.features.reduction is not None

    @property
    def rtl_hash(self) -> str:
        """Hash of the specification and its sources, as calibrated."""
        return combined_hash(self.found.sources)

    @property
    def worst_error_pct(self) -> float:
        """The worst error of the calibration's blind checks."""
        return max(result.max_abs_error_pct for result in self.found.results)

    def check(self, program: Program) -> None:
        """Hold that the mesh can carry what a program sends.

        Raises:
            InputError: naming the first transfer that it cannot.
        """
        layout = FlitLayout(self.spec, program.rows, program.cols)
        limit, name = self.spec.limits.packet_flits, self.spec.file.name
        for operation in program.within_tiles():
            if not isinstance(operation, Transfer):
                continue
            if isinstance(operation, Send) and limit is not None and operation.flits > limit:
                raise InputError(
                    f"{name}: limits.packet_flits: found a transfer of {operation.flits} flits; "
                    f"allowed: {limit}"
                )
            if isinstance(operation, Reduce):
                self._check_operation(operation)
            for way in operation.ways() if isinstance(operation, Multicast | Reduce) else ():
                if layout.names(_goal(operation, way, program.cols)):
                    continue
                feature = "reduction" if way.inwards else "multicast"
                allowed = getattr(self.spec.features, feature)
                raise InputError(
                    f"{name}: features.{feature}: found a kernel with a {feature} of "
                    f"rows {way.members.rows}, columns {way.members.cols}; "
                    f"allowed: {allowed or 'none'}"
                )

    def _check_operation(self, reduce: Reduce) -> None:
        known = self.spec.operations()
        if reduce.operation not in known:
            raise InputError(
                f"{self.spec.file.name}: operation: found a kernel that reduces to the "
                f"{reduce.operation}; allowed: {', '.join(known)}"
            )


def _goal(operation: Transfer, way: Way, cols: int) -> TileSet | packets.ReductionGoal:
    if not isinstance(operation, Reduce):
        return way.members
    maximum = operation.operation == "maximum"
    return packets.ReductionGoal(way.members, way.tile[0] * cols + way.tile[1], maximum)


def own_routers(spec_file: str, *, allow_stale: bool) -> OwnRouters:
    """The routers of a specification, which has been calibrated.

    Raises:
        InputError: if the specification is wrong, or its calibration missing, or stale unless that
            is allowed.
    """
    spec = load_spec(Path(spec_file))
    if allow_stale and calibration_file(spec).is_file():
        try:
            text = calibration_file(spec).read_text(encoding="utf-8")
            return OwnRouters(spec, OwnCalibration.model_validate_json(text))
        except (UnicodeError, ValidationError):
            pass  # what is wrong with it says the strict reading
    return OwnRouters(spec, load_own(spec))
