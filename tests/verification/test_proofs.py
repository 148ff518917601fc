"""The blocks hold to their properties, and a block that does not is found out."""

import shutil
from pathlib import Path

import pytest

from tlm.calibrated import REPOSITORY
from verification.proofs import PROOFS, Proof, prove

MUTANTS = {
    "the pointer stays at the winner": (
        Proof("rr_arbiter", {"Requesters": 5}),
        "preferred_d = ~(grant_o | (grant_o - Requesters'(1)))",
        "preferred_d = ~(grant_o - Requesters'(1))",
        "no_other_twice_while_one_waits",
    ),
    "a full FIFO takes an entry": (
        Proof("fifo", {"Depth": 4}),
        "ready_o = count_q != CountWidth'(Depth)",
        "ready_o = 1'b1",
        "takes_until_full",
    ),
    "the pointer turns a place late": (
        Proof("fifo", {"Depth": 3}),
        "front_q == End",
        "&front_q",
        "leaves_in_order_unchanged",
    ),
    "a flit is gone when one branch has read it": (
        Proof("fork_fifo", {"Depth": 3, "Branches": 2}),
        "(&(passed | ~needed_i))",
        "(|(passed & needed_i))",
        "never_stuck",
    ),
    "a branch runs on into the next packet": (
        Proof("fork_fifo", {"Depth": 3, "Branches": 2}),
        "needed_i[b] & ~done_q[b] & (ahead_q[b] < count_q)",
        "needed_i[b] & (ahead_q[b] < count_q)",
        "reads_only_its_own",
    ),
}


def name(proof: Proof) -> str:
    return "-".join([proof.block, *(str(value) for value in proof.parameters.values())])


@pytest.mark.slow  # before its first run, Yosys is compiled for more than a minute
@pytest.mark.parametrize("proof", PROOFS, ids=name)
def test_properties_hold(proof: Proof) -> None:
    assert prove(proof).failure == ""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_block_is_refuted(mutant: str, tmp_path: Path) -> None:
    proof, right, wrong, broken = MUTANTS[mutant]
    text = (REPOSITORY / "rtl" / "noc" / f"{proof.block}.sv").read_text()
    assert text.count(right) == 1
    copy = tmp_path / f"{proof.block}.sv"
    copy.write_text(text.replace(right, wrong))
    verdict = prove(proof, [copy])
    assert verdict.failure.startswith("refuted: ")
    names = [label.split(".")[-1] for label in verdict.failure.split(": ")[1].split(", ")]
    assert broken in names
    assert verdict.trace is not None and verdict.trace.stat().st_size
    shutil.rmtree(verdict.trace.parent)


def test_properties_are_those_of_the_top() -> None:
    assert Proof("rr_arbiter", {}).properties() == [
        "grants_one_at_most",
        "grants_only_requests",
        "grants_if_requested",
        "no_other_twice_while_one_waits",
    ]
