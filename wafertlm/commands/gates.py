"""``wafertlm gates``: what a router in Verilog costs in gates, with parameters as one likes."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from tlm.errors import InputError, check_range
from tlm.files import names_file
from wafertlm.commands.common import LibertyFile, OutputFile, Text, WholeNumber, output_options
from wafertlm.commands.grouped import GroupedCommand
from wafertlm.options import parse_grid
from wafertlm.output import CheckFailedError, Result, complete, config_hash, emit
from wafertlm.stopwatch import stopwatch

_WIDEST_BITS = 8192


def _known_names() -> dict[str, list[str]]:
    from wafertlm.routers import router_names

    return {"routers": router_names()}


def _render(result: Result) -> Table:
    from wafertlm.compare.gates import FIGURES

    changed = "".join(f", {change}" for change in result["options"]["set"])
    table = Table(
        title=f"{result['options']['router']}{changed}, payloads of {result['payload_bits']} bits"
    )
    table.add_column("gates")
    table.add_column("a router", justify="right")
    table.add_column(f"{result['grid']} routers", justify="right")
    for name, told in FIGURES.items():
        if result["router"][name] is not None:
            table.add_row(told, *(f"{result[of][name]:,.0f}" for of in ("router", "chip")))
    return table


@click.command("gates", cls=GroupedCommand)
@click.argument("router", required=False, metavar="NAME|SPEC.toml", type=Text())
@click.option(
    "--set",
    "changes",
    multiple=True,
    type=Text(),
    metavar="PARAMETER=VALUE",
    help="Change a parameter of the Verilog, such as FifoDepth=8 (repeatable).",
)
@click.option("--mesh", type=Text(), help="ROWSxCOLS; if not given the size of the fit.")
@click.option("--payload-bits", type=WholeNumber(), help="If not given as the router has it.")
@click.option(
    "--toggles/--no-toggles",
    default=False,
    help="Whether toggles are counted, too: a minute or two, once.",
)
@click.option(
    "--liberty",
    type=LibertyFile(),
    help="A library of cells in Liberty's format, for areas.",
)
@click.option("--out", type=OutputFile(), help="Store the result (JSON).")
@output_options(_known_names)
def command(
    router: str | None,
    changes: tuple[str, ...],
    mesh: str | None,
    payload_bits: int | None,
    toggles: bool,
    liberty: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Count the gates of a router: a shipped one by its name, or a custom one's specification.

    Counts compare variants: no technology is behind them. With --liberty its cells' area stands
    beside them. What has been counted is kept.
    """
    from cosim.spec.mesh import load_spec
    from tlm.calibrated import file_hash
    from wafertlm.gates import changed_parameters, router_gates
    from wafertlm.routers import specification

    if router is None:
        raise InputError("gates: no router given; write a name of --list, or a SPEC.toml")
    if payload_bits is not None:
        check_range("--payload-bits", payload_bits, 1, _WIDEST_BITS)
    file = Path(router) if names_file(router) else specification(router)
    spec = load_spec(file)
    spec = load_spec(file, changed_parameters(spec, changes))
    rows, cols = spec.mesh.fit if mesh is None else parse_grid("--mesh", mesh)
    with stopwatch() as watch, watch.compiling():
        found = router_gates(spec, rows, cols, payload_bits, has_toggles=toggles, liberty=liberty)
    if found["finding"] is not None:
        raise CheckFailedError(f"gates cannot be counted: {found['finding']}")
    options: dict[str, Any] = {
        "router": file.name if names_file(router) else router,
        "set": list(changes),
        "mesh": found["grid"],
        "payload_bits": found["payload_bits"],
        "toggles": toggles,
        "liberty": None if liberty is None else liberty.name,
    }
    held = {"router": config_hash(spec.model_dump())} if names_file(router) else {}
    held |= {} if liberty is None else {"liberty": file_hash(liberty)}
    result = complete("gates", options, found, watch.times, contents=held)
    emit(result, as_json, _render, out)
