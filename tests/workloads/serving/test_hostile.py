"""Malformed and hostile traces and options: a clear error or a right answer, never a traceback."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.workloads.serving.served import LoggedModel
from tlm.errors import InputError
from wafertlm.commands.serve import command
from workloads.serving.engine.run import Limits, run
from workloads.serving.load.traces import MAX_TOKENS, Trace, load_trace
from workloads.serving.schedulers import Chunked

_FEW, _SOME, _MANY = 80, 400, 10_000
_PARTS = 4  # of the many commands, so that workers share them
_NUMBERS = (
    *("0", "1", "7", "12.5", "1e3", "1E-3", "5.", ".5", "100", "3600", "8640000", "8640001"),
    *("-1", "-0", "nan", "NaN", "inf", "-inf", "1e999", "1e-999", "0x10", "1_000", "+3", "１２"),
    *("9" * 30, "9" * 5000, str(MAX_TOKENS), str(MAX_TOKENS + 1), "", " ", "null", "true", "'1'"),
    *(
        "2023-11-16 18:15:46.6805900",
        "2023-02-30 00:00:00",
        "0001-01-01 00:00:00",
        "1,1",
        '"',
        "\0",
    ),
    *("9999-12-31 23:59:59", "2023-11-16T18:15:46Z", "2023-11-16 18:15:46+99:99", "\u2028", "=1+1"),
)
_HEADERS = (
    "arrived_at,num_prefill_tokens,num_decode_tokens",
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "num_decode_tokens,arrived_at,other,num_prefill_tokens",
    "arrived_at,num_prefill_tokens",
    "a,b,c",
    "",
)
_JSON = (
    *(1, 7, 0, -1, 2.0, 2.5, 1e300, 10**30, True, None, "5", [], {}, [[1]], {"a": {"b": 1}}),
    *(float("nan"), float("inf"), 3600 * 10**9, 9 * 10**18),
)


def _csv(rng: random.Random) -> bytes:
    header = rng.choice(_HEADERS) if rng.random() < 0.2 else rng.choice(_HEADERS[:3:2])
    good = ("3", "1", "7", "30")
    rows = [
        ",".join(
            rng.choice(_NUMBERS) if rng.random() < 0.04 else rng.choice(good)
            for _ in range(max(1, header.count(",") + 1 - (rng.random() < 0.01)))
        )
        for _ in range(rng.randrange(9))
    ]
    return "\n".join([header, *rows]).encode("utf-8")


def _jsonl(rng: random.Random) -> bytes:
    lines = []
    for _ in range(rng.randrange(9)):
        request = {
            name: rng.choice(_JSON) if rng.random() < 0.05 else rng.choice((1, 5, 30))
            for name in ("input_toks", "output_toks", "arrival_time_ns", "more")
            if rng.random() > 0.01
        }
        nested = "[" * rng.choice((2, 50_000)) + "]" * rng.choice((2, 50_000))
        lines.append(nested if rng.random() < 0.02 else json.dumps(request))
    return "\n".join(lines).encode("utf-8")


def _damaged(rng: random.Random, content: bytes) -> bytes:
    match rng.randrange(12):
        case 0:
            return content.decode().encode("utf-16")
        case 1:
            return b"\xef\xbb\xbf" + content
        case 2:
            return content.replace(b"\n", b"\r\n")
        case 3 if content:
            place = rng.randrange(len(content))
            return content[:place] + rng.randbytes(rng.randrange(1, 9)) + content[place:]
        case 4:
            return content[: rng.randrange(len(content) + 1)]
        case _:
            return content


def _holds(trace: Trace) -> None:
    """A trace that was read is in order, in range, and can be served."""
    assert trace.arrival_ps[0] == 0
    assert (np.diff(trace.arrival_ps) >= 0).all()
    tokens = np.concatenate([trace.prompt_tokens, trace.output_tokens])
    assert tokens.min() >= 1
    assert tokens.max() <= MAX_TOKENS
    if tokens.sum() < 1000:
        figures = run(trace, Chunked(), LoggedModel(), limits=Limits(4096))
        assert figures["completed"] == len(trace)


def _file(path: Path, rng: random.Random) -> Path:
    """A trace, damaged or not."""
    make, suffix = rng.choice(((_csv, ".csv"), (_jsonl, ".jsonl")))
    file = path / f"load{suffix}"
    file.write_bytes(_damaged(rng, make(rng)))
    return file


def _hostile_traces(path: Path, seeds: range) -> tuple[int, int]:
    """How many were served and how many refused."""
    served = refused = 0
    for seed in seeds:
        file = _file(path, random.Random(seed))
        try:
            trace = load_trace(file)
        except InputError as error:
            assert "\n" not in str(error), seed
            assert file.name in str(error), seed
            assert len(str(error)) < 400, seed
            refused += 1
        else:
            _holds(trace)
            served += 1
    return served, refused


def test_hostile_traces(tmp_path: Path) -> None:
    served, refused = _hostile_traces(tmp_path, range(_SOME))
    assert min(served, refused) > _SOME / 5


@pytest.mark.slow
def test_many_hostile_traces(tmp_path: Path) -> None:
    served, refused = _hostile_traces(tmp_path, range(_MANY))
    assert min(served, refused) > _MANY / 5


_PLAIN = {
    "--model": ("llama3-8b", "gpt-oss-20b"),
    "--chip": ("flat32", "h100x2"),
    "--scheduler": ("chunked", "layered", "pd-fusion", "static", "pd-disaggregation"),
}
_DRAWN = {"--workload": ("sharegpt",), "--rate": ("4", "inf"), "--requests": ("3",)}
_EXTRA = (
    *("--arrival-cv", "--rate-scale", "--slo-ttft", "--slo-tbt", "--seed", "--token-budget"),
    *("--layer-groups", "--budget-units", "--chunk-units", "--prefill-scheduler"),
    *("--prefill-units", "--decode-units", "--link-bytes-per-s", "--link-latency-s", "--kv-tokens"),
    *("--kv-sram-tokens", "--max-sequences", "--trace", "--attainment", "--checkpoint", "--out"),
    *("--workload", "--rate", "--requests", "--plot", "--requests-csv", "--nonsense"),
    *("--checkpoint-every", "--draft-tokens", "--acceptance", "--weights", "--expert-parallel"),
)
# Options that are given together, or that would run long with some of the values; None: a flag.
_TOGETHER: tuple[dict[str, str | None], ...] = (
    *({"--rate": rate, "--arrival-cv": cv} for rate in ("1e-306", "1e-9") for cv in ("1", "100")),
    *({"--find-rate": None, "--slo-ttft": slo} for slo in ("1e-300", "2", "1e300")),
    *({"--seeds": seeds} for seeds in ("0", "2", "-1", "x", "")),
    {"--draft-tokens": "2", "--acceptance": "0.5"},
    *({"--kv-sram-tokens": tokens, "--draft-tokens": "3"} for tokens in ("0", "100", "3000")),
    *({"--model": "gpt-oss-20b", "--expert-parallel": groups} for groups in ("1", "2", "3")),
    *({"--weights": width, "--chip": "npusim-large"} for width in ("fp4", "fp8", "int3")),
    {"--json": None},
    {"--list": None},
)
_VALUES = (
    *("0", "1", "2", "16", "512", "100000", "-1", "nan", "inf", "-inf", "1e-300", "1e300", "0.5"),
    *("", "x", "chunked", "fp8", "9" * 25, "../..", "\u00e9"),
)


def _hostile_commands(path: Path, seeds: range) -> dict[int, int]:
    """How often each exit status came."""
    statuses: dict[int, int] = {}
    for seed in seeds:
        rng = random.Random(seed)
        given: dict[str, str | None] = {name: rng.choice(values) for name, values in _PLAIN.items()}
        if rng.random() < 0.5:
            given["--trace"] = str(_file(path, rng))
        else:
            given.update({name: rng.choice(values) for name, values in _DRAWN.items()})
        if rng.random() < 0.2:
            given[rng.choice([*_PLAIN])] = rng.choice(_VALUES)
        given.update({name: rng.choice(_VALUES) for name in rng.sample(_EXTRA, rng.randrange(3))})
        if rng.random() < 0.2:
            given.update(rng.choice(_TOGETHER))
        line = [part for option in given.items() for part in option if part is not None]
        told = CliRunner().invoke(command, line)
        if told.exception is not None and not isinstance(told.exception, SystemExit):
            assert isinstance(told.exception, InputError), (seed, given, told.exception)
            assert "\n" not in str(told.exception), (seed, given)
            told.exit_code = 2
        assert told.exit_code in (0, 2), (seed, given, told.output)
        statuses[told.exit_code] = statuses.get(told.exit_code, 0) + 1
    return statuses


@pytest.mark.filterwarnings("error")
def test_hostile_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    statuses = _hostile_commands(tmp_path, range(_FEW))
    assert min(statuses.get(0, 0), statuses.get(2, 0)) > _FEW / 10


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("part", range(_PARTS))
def test_many_hostile_commands(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = range(_FEW + part, _MANY, _PARTS)
    statuses = _hostile_commands(tmp_path, seeds)
    assert min(statuses.get(0, 0), statuses.get(2, 0)) > len(seeds) / 10
