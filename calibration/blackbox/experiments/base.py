"""What experiments on scenes of a custom mesh share."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from calibration.blackbox.mesh import BlackBoxMesh
from calibration.blackbox.scenes import Scene, closest, play_model
from calibration.blackbox.subject import Subject
from calibration.experiment import EXACT, Parameters
from tlm.calibrated import Parameter
from tlm.interconnect.zero_load import NocTiming


class SceneExperiment:
    """Its figure of a scene is the weighted mean cycle of the deliveries (scenes.py).

    Args:
        subject: The mesh, and what is known of it; what is identified here is added.
    """

    seed = 20240229
    targets = EXACT

    def __init__(self, subject: Subject) -> None:
        self.mesh = subject
        self.sources: Sequence[Path] = subject.sources()

    def rtl(self, case: Scene) -> BlackBoxMesh:
        """The mesh of a scene."""
        return self.mesh.mesh(case.size)

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """Figures on RTL."""
        return self.mesh.measure(list(cases))

    def predict(self, parameters: Parameters, cases: Sequence[Scene]) -> list[float]:
        """Figures on the handshake model."""
        return play_model(cases, self.mesh.timing)

    def label(self, case: Scene) -> str:
        """The scene in words."""
        return case.label

    def choose(
        self,
        candidates: Iterable[NocTiming],
        scenes: Sequence[Scene],
        measured: Sequence[float],
        what: str,
    ) -> list[NocTiming]:
        """The candidates that explain measurements best; says so where none does wholly."""
        best, misfit = closest(candidates, scenes, measured)
        if misfit > 0:
            self.mesh.not_represented.append(
                f"{what}: no form of the model explains every fit case; the nearest that was found "
                f"is off by {misfit:.2f} cycles in the mean"
            )
        return best


def exact(value: int, unit: str) -> Parameter:
    """An identified number."""
    return Parameter.exact(value, unit)


def bound(flits: int, specified: int | None, tried: int) -> Parameter:
    """The longest packet, and how it is known."""
    if specified:
        how = "as specified"
    else:
        how = "none longer was tried" if flits == tried else "longer ones get stuck"
    return Parameter.exact(flits, f"flits/packet, {how}")


def common(forms: Sequence[NocTiming], value: Callable[[NocTiming], int], unit: str) -> Parameter:
    """A number of the first form; its interval spans those of all that explain as much."""
    values = [value(form) for form in forms]
    return Parameter(value=values[0], unit=unit, ci95=(min(values), max(values)))


def kind(forms: Sequence[NocTiming], field: str, names: Sequence[str]) -> Parameter:
    """The same for a kind: its place among the names, and the name as the unit."""

    def place(form: NocTiming) -> int:
        return names.index(getattr(form, field))

    return common(forms, place, names[place(forms[0])])
