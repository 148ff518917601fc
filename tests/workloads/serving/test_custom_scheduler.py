"""A scheduler of a user's file: what it may be, and how its faults are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wafertlm

_LOAD = ("--workload", "fixed:100:10", "--rate", "inf", "--requests", "5", "--json")
_CHUNKED = """
from workloads.serving.schedulers import Chunk, Plan


class Mine:
    def __init__(self, token_budget=512):
        self.budget = token_budget

    def plan(self, queue):
        left, chunks = self.budget - queue.decode_tokens, []
        started = list(queue.prefilling)
        while left > 0 and (request := started.pop(0) if started else queue.admit()) is not None:
            chunks.append(Chunk(request, min(left, request.left_to_prefill)))
            left -= chunks[-1].tokens
        return Plan(chunks)
"""


def _serve(wafertlm: Wafertlm, scheduler: object, *more: str) -> Any:
    model = ("--model", "llama3-8b", "--chip", "flat32", "--scheduler", scheduler)
    return wafertlm("serve", *model, *_LOAD, *more)


def test_a_file_with_a_shipped_policy_gives_its_figures(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(_CHUNKED)
    for more in ((), ("--token-budget", "64")):
        own, shipped = (
            json.loads(_serve(wafertlm, name, *more).stdout) for name in (f"{file}:Mine", "chunked")
        )
        assert own["options"].pop("scheduler") == "mine.py:Mine"
        assert shipped["options"].pop("scheduler") == "chunked"
        beside = ("provenance", "cpu_s", "wall_s", "compile_s")
        assert {k: v for k, v in own.items() if k not in beside} == {
            k: v for k, v in shipped.items() if k not in beside
        }


def test_a_result_tells_contents_apart(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file, hashes = tmp_path / "mine.py", []
    for text in (_CHUNKED, _CHUNKED, _CHUNKED + "\n"):
        file.write_text(text)
        ran = json.loads(_serve(wafertlm, f"{file}:Mine").stdout)
        hashes.append(ran["provenance"]["config_hash"])
    assert hashes[0] == hashes[1] != hashes[2]


_PLAN = (
    "from workloads.serving.schedulers import Chunk, Plan\nclass Mine:\n    def plan(self, queue):"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Mine", "not Python: line 1: expected ':'"),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("Other = 1", "found no 'Mine'; it has: Other"),
        ("Mine = 1", "'Mine' is no class with a plan(queue)"),
        (f"{_PLAN}\n        return 1 / 0", "line 4: ZeroDivisionError: division by zero"),
        (f"{_PLAN}\n        return None", "Mine.plan: found NoneType; allowed: a Plan"),
        (
            f"{_PLAN}\n        r = queue.admit()\n        return Plan([Chunk(r, 0)])",
            "Mine.plan: found a chunk of 0 tokens of request 1; allowed: 1 to 100, what is left",
        ),
        (
            f"{_PLAN}\n        r = queue.admit()\n        return Plan([Chunk(r, 9), Chunk(r, 9)])",
            "Mine.plan: found two chunks of request 1; allowed: one",
        ),
        (
            f"{_PLAN}\n        r = queue.admit()\n        return Plan([Chunk(r, 9)], range(9, 99))",
            "Mine.plan: found layers range(9, 99); allowed: a range within range(0, 32)",
        ),
        ("raise SystemExit(0)", "line 1: SystemExit: 0"),
        (f"{_PLAN}\n        exit()", "line 4: SystemExit: None"),
        (
            "class Wrong(Exception):\n    def __str__(self):\n        raise self\nraise Wrong",
            "line 4: Wrong",
        ),
        (
            f"{_PLAN}\n        queue.admit()\n        return Plan([Chunk('x', 9)])",
            "Mine.plan: found a chunk of int of str; allowed: int of Request",
        ),
        (
            f"{_PLAN}\n        r = queue.admit()\n        return Plan([Chunk(r, 1.5)])",
            "Mine.plan: found a chunk of float of Request; allowed: int of Request",
        ),
        (
            f"{_PLAN}\n        return Plan(layers=3)",
            "AttributeError: 'int' object has no attribute 'step'",
        ),
    ],
)
def test_a_fault_names_the_file(
    wafertlm: Wafertlm, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    ran = _serve(wafertlm, f"{file}:Mine")
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr == f"error: {file}: {message}\n"


def test_what_a_file_prints_is_no_part_of_the_result(wafertlm: Wafertlm, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "print('loaded')"
        + _CHUNKED.replace("left, chunks", "print('planned')\n        left, chunks")
    )
    ran = _serve(wafertlm, f"{file}:Mine")
    assert json.loads(ran.stdout)["completed"] == 5
    assert "loaded" in ran.stderr and "planned" in ran.stderr


@pytest.mark.parametrize(
    ("scheduler", "more", "message"),
    [
        ("mine.py", (), "--scheduler: found 'mine.py'; write FILE.py:NAME"),
        ("nowhere.py:Mine", (), "nowhere.py: cannot be read: No such file or directory"),
        (
            "{file}:Mine",
            ("--layer-groups", "2"),
            "--layer-groups: found with mine.py:Mine; allowed: token_budget",
        ),
        (
            "{file}:Mine",
            ("--checkpoint", "kept"),
            "--checkpoint: found with {file}:Mine, whose state it does not keep; allowed: with a",
        ),
    ],
)
def test_what_does_not_fit(
    wafertlm: Wafertlm, tmp_path: Path, scheduler: str, more: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(_CHUNKED)
    ran = _serve(wafertlm, scheduler.format(file=file), *more)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {message.format(file=file)}")
