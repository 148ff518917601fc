"""Changed copies of a custom mesh, and what its calibration has to find of them."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from calibration.routers.custom import calibrate_custom
from calibration.routers.stored import CustomCalibration
from cosim.spec.mesh import MeshSpec, load_spec

#: A file beside the specification, a text that stands there once, and what comes in its place.
Change = tuple[str, str, str]
#: A number, or an interval where no scene tells.
Found = int | tuple[int, int]
#: What moves; None: it is no longer asked for.
Moved = Mapping[str, Found | None]


def variant(original: Path, folder: Path, changes: list[Change]) -> MeshSpec:
    """A changed copy of a specification and its sources."""
    for source in load_spec(original).source_files():
        shutil.copy(source, folder)
    (folder / "spec.toml").write_text(original.read_text().replace("../../rtl/noc/", ""))
    for name, old, new in changes:
        text = (folder / name).read_text()
        assert text.count(old) == 1, f"{name}: {old}"
        (folder / name).write_text(text.replace(old, new))
    return load_spec(folder / "spec.toml")


def _found(calibration: CustomCalibration) -> dict[str, Found]:
    """All that was identified, by name."""
    found = dict[str, Found]()
    for result in calibration.results:
        for name, parameter in result.parameters.items():
            key = f"{result.name}.{name}" if name == "gap_cycles" else name
            low, high = map(int, parameter.ci95)
            found[key] = low if low == high else (low, high)
    return found


def holds(spec: MeshSpec, expected: Mapping[str, Found]) -> None:
    """Exactly this is identified, and by it every blind check holds to the cycle."""
    calibration = calibrate_custom(spec, quick=True)
    found = _found(calibration)
    differ = {n for n in found.keys() | expected if found.get(n) != expected.get(n)}
    assert {n: (found.get(n), expected.get(n)) for n in sorted(differ)} == {}
    for result in calibration.results:
        assert [point for point in result.check if point.rtl != point.model] == []
    assert calibration.not_represented == []


def with_moved(found: Mapping[str, Found], moved: Moved) -> dict[str, Found]:
    changed = {**found, **moved}
    return {name: value for name, value in changed.items() if value is not None}
