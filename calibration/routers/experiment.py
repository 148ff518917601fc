"""What experiments on routers share."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from calibration.experiment import EXACT, LawContradictedError, Parameters
from calibration.routers.mesh import BlackBoxMesh
from calibration.routers.scenes import Scene, closest, play_model, unicast_of
from calibration.routers.subject import Subject
from calibration.solve import solve_exactly
from tlm.calibrated import Parameter
from tlm.interconnect.zero_load import NocTiming


class RouterExperiment:
    """An experiment on a mesh.

    Args:
        subject: The mesh, and what is known of it; what is identified here is added.
    """

    name: str
    subject: str
    targets = EXACT

    def __init__(self, subject: Subject) -> None:
        self.mesh = subject

    @property
    def untried(self) -> Sequence[str]:
        """Situations of its subject that no case is about."""
        return ()

    @property
    def sources(self) -> Sequence[Path]:
        """The mesh's Verilog, and its specification."""
        return self.mesh.sources()

    def fit_cases(self) -> list[Any]:
        """None, where the other experiments have fitted everything."""
        return []

    def rtl(self, case: Any) -> BlackBoxMesh:
        """The mesh of a case."""
        return self.mesh.mesh(case.size)

    def identify(self, cases: Sequence[Any], values: Sequence[float]) -> dict[str, Parameter]:
        """Parameters that explain the measurements; the subject knows them from then on."""
        parameters = self.find(cases, values) if cases else {}
        self.mesh.found[self.name] = parameters
        return parameters

    def find(self, cases: Sequence[Any], values: Sequence[float]) -> dict[str, Parameter]:
        """The parameters; none, where nothing is fitted."""
        return {}

    def label(self, case: Any) -> str:
        """The case in words."""
        return str(case.label)

    def situation(self, case: Any) -> str:
        """What the case is about."""
        return str(case.situation or self.subject)


class SceneExperiment(RouterExperiment):
    """Its figures are those of scenes (scenes.py)."""

    seed = 20240229

    def measure(self, cases: Sequence[Scene]) -> list[float]:
        """Figures on RTL."""
        return self.mesh.measure(list(cases))

    def predict(self, parameters: Parameters, cases: Sequence[Scene]) -> list[float]:
        """Figures on the handshake model."""
        return self.mesh.play_model(cases)

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
            self.mesh.note(
                f"{what}: no form of the model explains every fit case; the nearest that was found "
                f"is off by {misfit:.2f} cycles in the mean"
            )
        return best

    def law(
        self, units: dict[str, str], rows: Sequence[Sequence[int]], rests: Sequence[float]
    ) -> dict[str, Parameter]:
        """Constants of a closed form; none where lone transfers follow none.

        The handshake model needs none of them.

        Args:
            units: Unit of each constant by its name.
            rows: How often each counts, a row a scene.
            rests: What they amount to.
        """
        try:
            found = solve_exactly(rows, rests)
        except LawContradictedError as error:
            self.mesh.follows_no_law(error)
            return {}
        named = zip(units.items(), found, strict=True)
        return {name: exact(value, unit) for (name, unit), value in named}


def beyond_unicast(
    scenes: Sequence[Scene], measured: Sequence[float], timing: NocTiming
) -> list[float]:
    """Cycles that lone transfers take beyond a unicast on their way."""
    ways = play_model([unicast_of(scene) for scene in scenes], timing)
    return [value - way for value, way in zip(measured, ways, strict=True)]


def exact(value: int, unit: str) -> Parameter:
    """An identified number."""
    return Parameter.exact(value, unit)


def bound(flits: int, specified: int | None, limited_by: str | None) -> Parameter:
    """The longest packet, and how it is known: as specified, or what longer ones do."""
    if specified:
        how = "as specified"
    else:
        how = f"longer ones {limited_by}" if limited_by else "no limit found: none longer was tried"
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
