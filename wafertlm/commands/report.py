"""``wafertlm report``: stored results as one HTML page."""

from pathlib import Path

import click

from tlm.errors import InputError
from wafertlm.commands.common import OutputFile
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import complete, emit
from wafertlm.stopwatch import stopwatch

_DEFAULT = click.core.ParameterSource.DEFAULT
_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = OutputFile()


@click.command("report", cls=GroupedCommand)
@click.option(
    "--results",
    "folder",
    type=_FOLDER,
    default=Path("results"),
    show_default=True,
    help="Folder of stored results (a command's --out or --json), with its subfolders. It need not "
    "be there if it is not named.",
)
@click.option("--out", type=_FILE, help="The page to write.  [default: report.html in --results]")
@click.option("--rtl", metavar="SPEC", help="Also a custom mesh, calibrated by its SPEC.toml.")
@click.option("--list", "as_list", is_flag=True, help="Print what there is to report.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: Path, out: Path | None, rtl: str | None, as_list: bool, as_json: bool) -> None:
    """Write the stored results into one self-contained HTML page."""
    from wafertlm.report.page import CALIBRATION_FOLDER, write_report
    from wafertlm.report.stored import load_results

    if as_list:
        results = load_results(folder, CALIBRATION_FOLDER, rtl)
        names = [c.name for c in results.calibrations]
        custom = [c.name for c in results.custom.found.results] if results.custom else []
        found = {"experiments": names, "own_experiments": custom}
        found |= {"kernels": [*results.kernels], "servings": [*results.serves]}
        kinds = ("comparisons", "explorations", "iterations", "studies", "others")
        found |= {kind: [*getattr(results, kind)] for kind in kinds}
        emit(found, as_json, lambda r: "\n".join(f"{k}: {', '.join(v)}" for k, v in r.items()))
        return
    # Calibrations are something to report without any stored run.
    named = click.get_current_context().get_parameter_source("folder") is not _DEFAULT
    if out is None and named and not folder.is_dir():
        raise InputError(f"--results: no folder '{folder}'; allowed: a folder, or give --out")
    with stopwatch() as watch:
        figures = write_report(folder, out or folder / "report.html", spec_file=rtl)
    options = {"results": folder, "rtl": Path(rtl).name if rtl else None}
    result = complete("report", options, figures, watch.times)
    emit(result, as_json, lambda r: f"report: {r['report']}")
