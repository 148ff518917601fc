"""``wafertlm show``: the file of a chip, a model or a router, to start one's own from."""

from pathlib import Path
from typing import Any

import click

from tlm.errors import InputError, choose
from tlm.files import names_file
from wafertlm.commands.common import output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.output import Result, complete, config_hash, emit
from wafertlm.stopwatch import stopwatch

_ROUTER = "router"
_KINDS = ("chip", "model", _ROUTER)


def known_names() -> dict[str, list[str]]:
    """What the arguments may name."""
    from tlm.chips.find import all_chip_names
    from wafertlm.routers import router_names
    from workloads.models import model_names

    return {
        "kinds": list(_KINDS),
        "chips": list(all_chip_names()),
        "models": list(model_names()),
        "routers": router_names(),
    }


def show_figures(kind: str, asked: str) -> dict[str, Any]:
    """A chip, a model or a router: ``toml``, its file, and under its kind what is read there.

    Of a chip with areas also ``core_mm2``, that of one of its cores; None beyond its points.

    Raises:
        InputError: for a name that is not known, and a file at fault.
    """
    from cosim.spec.mesh import load_spec
    from tlm.chips import Chip
    from tlm.chips import find as chips
    from tlm.chips.area import core_mm2
    from wafertlm.routers import specification
    from workloads.models import find as models

    if choose("kind", kind, _KINDS) == _ROUTER:
        spec = load_spec(specification(asked))
        return {"toml": spec.file.read_text(encoding="utf-8"), kind: spec.model_dump()}
    if kind == "model":
        return {"toml": models.text_of(asked), kind: models.find_model(asked).model_dump()}
    chip = chips.find_chip(asked)
    area = {"core_mm2": core_mm2(chip)} if isinstance(chip, Chip) and chip.area else {}
    return {"toml": chips.text_of(asked), kind: chip.model_dump(), **area}


def _render(result: Result) -> str:
    return str(result["toml"])


@click.command("show", cls=GroupedCommand)
@click.argument("kind", required=False, metavar="chip|model|router")
@click.argument("name", required=False, metavar="NAME|FILE")
@click.option(
    "--out",
    "copied_to",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Of a router: copy the specification and its Verilog into a new folder.",
)
@output_options(known_names)
def command(kind: str | None, name: str | None, copied_to: Path | None, as_json: bool) -> None:
    """Print the TOML file of a chip, a model or a router, to change and give to an option.

    These are --chip, --model and --rtl. A config.json in Hugging Face's format is shown as the TOML
    that it becomes. A router also has Verilog: --out copies all of it.
    """
    from wafertlm.routers import copy_router

    if kind is None or name is None:
        kinds = " or ".join(f"'show {each} NAME'" for each in _KINDS)
        raise InputError(f"show: write {kinds}; see --list for names")
    if copied_to is not None and kind != _ROUTER:
        raise InputError(f"--out: found it with '{kind}'; allowed: with router")
    with stopwatch() as watch:
        figures = show_figures(kind, name)
        if copied_to is not None:
            figures["files"] = copy_router(name, copied_to)
    if not as_json and copied_to is not None:
        first, *others = figures["files"]
        click.echo(f"{copied_to / first}, with {len(others)} files of Verilog")
        return
    if not as_json:  # as it stands, to be written to a file
        click.echo(figures["toml"], nl=False)
        return
    options = {"kind": kind, "name": figures[kind]["name"]}
    held = {"name": config_hash(figures[kind])} if names_file(name) else None
    result = complete("show", options, figures, watch.times, contents=held)
    emit(result, as_json, _render)
