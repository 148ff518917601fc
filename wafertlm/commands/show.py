"""``wafertlm show``: the file of a chip, a model or a router, to start one's own from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tlm.chips import find as chips
from tlm.errors import InputError, choose
from tlm.files import names_file
from tlm.tables import Table
from wafertlm.commands.common import output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.example_routers import copy_router, router_files, router_names, router_text
from wafertlm.output import Result, complete, config_hash, emit
from wafertlm.stopwatch import stopwatch
from workloads.models import find as models
from workloads.models import model_names

_KINDS: dict[str, tuple[Callable[[str], Table], Callable[[str], str]]] = {
    "chip": (chips.find_chip, chips.text_of),
    "model": (models.find_model, models.text_of),
}
_ROUTER = "router"


def known_names() -> dict[str, list[str]]:
    """What the arguments may name."""
    return {
        "kinds": [*_KINDS, _ROUTER],
        "chips": list(chips.all_chip_names()),
        "models": list(model_names()),
        "routers": list(router_names()),
    }


def show_figures(kind: str, asked: str) -> dict[str, Any]:
    """``toml``, a file, and under its kind what is read there: of a router its files' names.

    Raises:
        InputError: for a name that is not known, and a file at fault.
    """
    choose("kind", kind, (*_KINDS, _ROUTER))
    if kind == _ROUTER:
        files = [path.name for path in router_files(asked)]
        return {"toml": router_text(asked), kind: {"name": asked, "files": files}}
    find, text_of = _KINDS[kind]
    return {"toml": text_of(asked), kind: find(asked).model_dump()}


def _render(result: Result) -> str:
    return str(result["toml"])


@click.command("show", cls=GroupedCommand)
@click.argument("kind", required=False, metavar="chip|model|router")
@click.argument("name", required=False, metavar="NAME|FILE")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Of a router: copy its TOML file and its Verilog into a new folder.",
)
@output_options(known_names)
def command(kind: str | None, name: str | None, into: Path | None, as_json: bool) -> None:
    """Print the TOML file of a chip, a model or a router, to change and give to a command.

    A config.json in Hugging Face's format is shown as the TOML that it becomes.
    """
    if kind is None or name is None:
        raise InputError("show: write 'show chip NAME' or 'show model NAME'; see --list for names")
    if into is not None and kind != _ROUTER:
        raise InputError(f"--into: found with a {kind}, which is one file; allowed: with a router")
    with stopwatch() as watch:
        figures = show_figures(kind, name)
        if into is not None:
            copy_router(name, into)
    if not as_json:  # as it stands, to be written to a file
        told = figures["toml"] if into is None else f"{into / name}.toml\n"
        click.echo(told, nl=False)
        return
    options = {"kind": kind, "name": figures[kind]["name"]}
    held = {"name": config_hash(figures[kind])} if names_file(name) else None
    result = complete("show", options, figures, watch.times, contents=held)
    emit(result, as_json, _render)
