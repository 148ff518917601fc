"""``wafertlm show``: the file of a chip or a model, to start one's own from."""

from collections.abc import Callable
from typing import Any

import click

from tlm.chips import Chip
from tlm.chips import find as chips
from tlm.chips.area import core_mm2
from tlm.errors import InputError, choose
from tlm.files import names_file
from tlm.tables import Table
from wafertlm.commands.common import output_options
from wafertlm.output import Result, complete, config_hash, emit
from wafertlm.stopwatch import stopwatch
from workloads.models import find as models
from workloads.models import model_names

_KINDS: dict[str, tuple[Callable[[str], Table], Callable[[str], str]]] = {
    "chip": (chips.find_chip, chips.text_of),
    "model": (models.find_model, models.text_of),
}


def known_names() -> dict[str, list[str]]:
    """What the arguments may name."""
    return {
        "kinds": list(_KINDS),
        "chips": list(chips.all_chip_names()),
        "models": list(model_names()),
    }


def show_figures(kind: str, asked: str) -> dict[str, Any]:
    """A chip or a model: ``toml``, its file, and under its kind what is read there.

    Of a chip with areas also ``core_mm2``, that of one of its cores; None beyond its points.

    Raises:
        InputError: for a name that is not known, and a file at fault.
    """
    find, text_of = _KINDS[choose("kind", kind, tuple(_KINDS))]
    found = find(asked)
    area = {"core_mm2": core_mm2(found)} if isinstance(found, Chip) and found.area else {}
    return {"toml": text_of(asked), kind: found.model_dump(), **area}


def _render(result: Result) -> str:
    return str(result["toml"])


@click.command("show")
@click.argument("kind", required=False, metavar="chip|model")
@click.argument("name", required=False, metavar="NAME|FILE")
@output_options(known_names)
def command(kind: str | None, name: str | None, as_json: bool) -> None:
    """Print the TOML file of a chip or a model, to change and give to --chip or --model.

    A config.json in Hugging Face's format is shown as the TOML that it becomes.
    """
    if kind is None or name is None:
        raise InputError("show: write 'show chip NAME' or 'show model NAME'; see --list for names")
    with stopwatch() as watch:
        figures = show_figures(kind, name)
    if not as_json:  # as it stands, to be written to a file
        click.echo(figures["toml"], nl=False)
        return
    options = {"kind": kind, "name": figures[kind]["name"]}
    held = {"name": config_hash(figures[kind])} if names_file(name) else None
    result = complete("show", options, figures, watch.times, contents=held)
    emit(result, as_json, _render)
