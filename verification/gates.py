"""``python -m verification.gates``: what the router costs in gates and flip-flops, by feature.

What is counted, and how, says `cosim/synthesis/cells.py`.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import click
from rich.console import Console
from rich.table import Table

from cosim.synthesis.cells import Cost, synthesised
from cosim.synthesis.yosys import ToolError, read_command, sources_read, yosys_version
from tlm.calibrated import REPOSITORY, changed_sources, source_hashes
from tlm.errors import InputError
from verification import stored
from verification.stored import StoredRecord

STORED = Path(__file__).with_name("gates.json")
README = REPOSITORY / "rtl" / "README.md"
_ROUTER = REPOSITORY / "rtl" / "noc" / "router.sv"

BASE = {
    "Rows": 4, "Cols": 4, "FifoDepth": 4, "OutputDepth": 0, "PayloadWidth": 64, "Stages": 1,
    "YFirst": 0, "Multicast": 0, "Reduction": 0, "CutThrough": 1, "Loopback": 1,
    "ElementWidth": 32, "ReduceStages": 1,
}  # fmt: skip
_FEATURES: dict[str, dict[str, int]] = {
    "unicast only": {},
    "multicast": {"Multicast": 1},
    "reduction": {"Reduction": 1},
    "both": {"Multicast": 1, "Reduction": 1},
}
_SIZES: dict[str, dict[str, int]] = {
    "": {},
    ", 2 flits a buffer": {"FifoDepth": 2},
    ", 8 flits a buffer": {"FifoDepth": 8},
    ", 32 bits of payload": {"PayloadWidth": 32},
    ", 128 bits of payload": {"PayloadWidth": 128},
}
VARIANTS: dict[str, dict[str, int]] = {
    feature + size: has | changed
    for size, changed in _SIZES.items()
    for feature, has in _FEATURES.items()
} | {
    "2 flits an output": {"OutputDepth": 2},
    "2 stages": {"Stages": 2},
    "YX": {"YFirst": 1},
    "multicast, no loopback": {"Multicast": 1, "Loopback": 0},
    "multicast, unprotected": {"Multicast": 1, "CutThrough": 0},
    "reduction, unregistered": {"Reduction": 1, "ReduceStages": 0},
    "both, unprotected": {"Multicast": 1, "Reduction": 1, "CutThrough": 0},
}


class StoredGates(StoredRecord):
    """Costs of all variants, the Verilog they are of, and the tool that counted them."""

    yosys: str
    sources: dict[str, str]
    base: dict[str, int]
    costs: dict[str, Cost]

    def changed_sources(self) -> list[str]:
        """Files that are no longer what was synthesised."""
        return changed_sources(self.sources)

    @classmethod
    def load(cls) -> Self:
        """What `write` stored.

        Raises:
            InputError: if it is missing or cannot be read.
        """
        return stored.load(cls, STORED, "gates")


def synthesise(parameters: Mapping[str, int]) -> tuple[Cost, list[Path]]:
    """Cost of the base router with some parameters changed, and the files it was read from.

    Raises:
        InputError: for a parameter that the router does not have.
        ToolError: if it cannot be synthesised.
    """
    with tempfile.TemporaryDirectory(prefix="wafertlm-") as folder:
        scratch = Path(folder)
        read = read_command("router", [_ROUTER], BASE | dict(parameters), scratch)
        found = synthesised(read, "router", scratch)
    return found.cost, sources_read(found.output)


def count_all(workers: int = 2) -> StoredGates:
    """Synthesise every variant, some at a time."""
    with ThreadPoolExecutor(workers) as pool:
        counted = list(pool.map(synthesise, VARIANTS.values()))
    return StoredGates(
        yosys=yosys_version(),
        sources=source_hashes({path for _, sources in counted for path in sources}),
        base=BASE,
        costs=dict(zip(VARIANTS, (cost for cost, _ in counted), strict=True)),
    )


def rows(gates: StoredGates) -> list[tuple[str, str, str, str, str]]:
    """Variant, changed parameters, NAND2 equivalents, flip-flops, and both against the base."""
    base = gates.costs["unicast only"]
    shown = []
    for name, cost in gates.costs.items():
        changed = ", ".join(f"{key} {value}" for key, value in VARIANTS[name].items()) or "-"
        against = (
            f"{100 * (cost.nand2 / base.nand2 - 1):+.0f} %, "
            f"{100 * (cost.flip_flops / base.flip_flops - 1):+.0f} %"
            if cost != base
            else "-"
        )
        shown.append((name, changed, f"{cost.nand2:,}", f"{cost.flip_flops:,}", against))
    return shown


_HEADINGS = ("router", "changed", "NAND2 equivalents", "flip-flops", "against the first")


def markdown(gates: StoredGates) -> str:
    """The block of `rtl/README.md`."""
    lines = [" | ".join(row) for row in (_HEADINGS, *rows(gates))]
    lines.insert(1, "|".join(["---", "---", "--:", "--:", "---"]))
    table = "\n".join(f"|{line}|" if "---" in line else f"| {line} |" for line in lines)
    base = ", ".join(f"{name} {value}" for name, value in gates.base.items())
    return (
        f"{table}\n\nThe first has {base}. Counted by Yosys {gates.yosys}; the same logic written "
        "another way has come out up to 2 % apart.\n"
    )


def write(gates: StoredGates) -> None:
    """Store the costs, and show them in `rtl/README.md`."""
    document = stored.with_block(README, "gates", markdown(gates))
    stored.store({STORED: gates.model_dump_json(indent=2) + "\n", README: document})


def differences(known: StoredGates, counted: StoredGates) -> list[str]:
    """What is not as stored, a line each; empty if nothing is."""
    lines = []
    if known.yosys != counted.yosys:
        lines.append(f"Yosys {counted.yosys}, stored with {known.yosys}")
    for name in sorted({*known.sources, *counted.sources}):
        if known.sources.get(name) != counted.sources.get(name):
            lines.append(f"{name} has changed")
    for name in dict.fromkeys([*known.costs, *counted.costs]):
        old, new = known.costs.get(name), counted.costs.get(name)
        if old != new:
            lines.append(f"{name}: {_text(new)}, stored as {_text(old)}")
    return lines


def _text(cost: Cost | None) -> str:
    return f"{cost.nand2} gates and {cost.flip_flops} flip-flops" if cost else "not counted"


def _render(gates: StoredGates) -> Table:
    table = Table(*_HEADINGS)
    for row in rows(gates):
        table.add_row(*row)
    return table


def _report(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"check failed: {line}", file=sys.stderr)
    if lines:
        raise SystemExit(1)


@click.command()
@click.option("--write", "to_write", is_flag=True, help="Store the figures.")
@click.option("--check", is_flag=True, help="Exit status 1 if they differ from those stored.")
def main(to_write: bool, check: bool) -> None:
    """Synthesise the router's variants and print what they cost."""
    try:
        known = StoredGates.load() if check else None
        counted = count_all()
        Console(width=None if sys.stdout.isatty() else 120, highlight=False).print(_render(counted))
        if to_write:
            write(counted)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except ToolError as error:
        _report([str(error)])
    else:
        if known:
            _report([*differences(known, counted)])


if __name__ == "__main__":
    main()
