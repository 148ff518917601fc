"""``python -m verification.prove``: prove the network's blocks and print what holds."""

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.table import Table

from cosim.synthesis.yosys import ToolError
from tlm.errors import InputError
from verification.proofs import PROOFS, STEPS, Proof, Verdict, prove


def prove_all(proofs: Iterable[Proof], workers: int = 2) -> list[Verdict]:
    """Prove several blocks, some at a time; each proof is a process of its own."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(prove, proofs))


def render(verdicts: Iterable[Verdict]) -> Table:
    """A row a block: its properties, how they were proved, and the verdict."""
    table = Table("block", "parameters", "properties", "method", "seconds", "result")
    for verdict in verdicts:
        proof = verdict.proof
        table.add_row(
            proof.block,
            "\n".join(f"{name} {value}" for name, value in proof.parameters.items()),
            "\n".join(proof.properties()),
            f"induction, {STEPS} steps",
            f"{verdict.seconds:.1f}",
            "proved" if not verdict.failure else f"{verdict.failure}\n{verdict.trace or ''}",
        )
    return table


@click.command()
@click.option("--quick", is_flag=True, help="Leave out what takes more than a few seconds.")
def main(quick: bool) -> None:
    """Prove the network's blocks for any input, in any number of cycles.

    Exit status 1 if a property does not hold; its trace is then kept and named.
    """
    try:
        verdicts = prove_all(proof for proof in PROOFS if not (quick and proof.slow))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except ToolError as error:
        print(f"check failed: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    Console(width=None if sys.stdout.isatty() else 120, highlight=False).print(render(verdicts))
    if any(verdict.failure for verdict in verdicts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
