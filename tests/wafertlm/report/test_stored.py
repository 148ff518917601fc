"""Stored results that the report cannot use, and files that are none of its business."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from numpy.lib.format import write_array_header_1_0

from tests.wafertlm.report.pages import (
    comparison_run,
    exploration_run,
    iteration_run,
    kernel_run,
    page_of,
    serve_run,
    study_run,
    unicast_alone,
)
from tlm.errors import InputError
from wafertlm.report.beside import MAP_ARRAYS
from wafertlm.report.page import write_report


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", r"a\.json: not JSON"),
        ("a.json", json.dumps(kernel_run(cycles="many")), r"a\.json: cycles: .*integer"),
        ("a.json", json.dumps(serve_run(ttft_s=None)), r"a\.json: ttft_s: "),
        ("chat.csv", "arrival_s\n1\n", r"chat\.csv: needs numbers in the columns ttft_s"),
        ("wafer/summa.npz", "text", r"summa\.npz: needs the arrays finish_cycle"),
    ],
)
def test_a_result_that_cannot_be_used_is_named(
    results: Path, name: str, content: str, message: str
) -> None:
    (results / name).write_text(content)
    with pytest.raises(InputError, match=message):
        page_of(results)


def npz(shape: tuple[int, ...] = (4, 4), **more: Any) -> bytes:
    """A map of tiles, of which arrays may be others."""
    arrays = {name: np.ones(shape) for name in MAP_ARRAYS} | more
    np.savez_compressed(file := BytesIO(), **arrays)
    return file.getvalue()


def bomb() -> bytes:
    """Zeros that fill 400 MB an array from less than two."""
    with ZipFile(file := BytesIO(), "w", ZIP_DEFLATED, compresslevel=1) as arrays:
        for name in MAP_ARRAYS:
            head = BytesIO()
            write_array_header_1_0(
                head, {"descr": "<f8", "fortran_order": False, "shape": (7000, 7000)}
            )
            with arrays.open(f"{name}.npy", "w") as array:
                array.write(head.getvalue())
                for _ in range(400):
                    array.write(bytes(980_000))
    return file.getvalue()


def zipped_zeros() -> bytes:
    return gzip.compress(bytes(200 << 20), compresslevel=1, mtime=0)


def npy() -> bytes:
    np.save(file := BytesIO(), np.ones((4, 4)))
    return file.getvalue()


_TABLE = b"ttft_s,e2e_s,mean_tbt_ms\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat.csv", _TABLE + b"\xff,1,1\n"),
        ("chat.csv", _TABLE + b"1" * 200_000 + b",1,1\n"),
        ("chat.csv", _TABLE + b"1,inf,1\n"),
        ("chat.csv", b"1" * (2 << 20)),
        ("wafer/summa.npz", b""),
        ("wafer/summa.npz", npy()),
        ("wafer/summa.npz", npz()[:300]),
        ("wafer/summa.npz", npz().replace(b"\x78", b"\x79").replace(b"PK\x03", b"PK\x04", 1)),
        ("wafer/summa.npz", npz((0, 0))),
        ("wafer/summa.npz", npz(wait_cycles=np.full((4, 4), np.inf))),
        ("wafer/summa.npz", npz(wait_cycles=np.full((4, 4), "x"))),
        ("wafer/summa.npz", bomb),
        ("a.json", b"\xff"),
        ("a.json", b"[" * 100_000 + b"]" * 100_000),
        ("a.json", b"[" * 100 + b"]" * 100),
        ("a.json", b"9" * 5000),
        ("a.json", json.dumps(kernel_run(cycles=0)).encode()),
        ("a.json", json.dumps(kernel_run() | {"options": []}).encode()),
        ("a.json", json.dumps(kernel_run(command="other") | {"options": [1]}).encode()),
        ("a.json", json.dumps(kernel_run(cycles=10**400)).encode()),
        ("a.json", json.dumps(serve_run(throughput_tok_s=float("inf"))).encode()),
        ("a.json", json.dumps(comparison_run(variants=[])).encode()),
        ("a.json", json.dumps(exploration_run(trials="many")).encode()),
        ("a.json", json.dumps(iteration_run() | {"kernels": []}).encode()),
        ("a.json", json.dumps(study_run() | {"rows": [{}]}).encode()),
        ("wafer/summa.json.gz", b"text"),
        ("wafer/summa.json.gz", gzip.compress(b"[]", mtime=0)),
        ("wafer/summa.json.gz", zipped_zeros),
        ("wafer/summa.json.gz", gzip.compress(b'{"traceEvents": [{"ph": "X", "ts": 0}]}', mtime=0)),
    ],
)
def test_a_damaged_result_is_named(
    results: Path, name: str, content: bytes | Callable[[], bytes]
) -> None:
    # What takes seconds to make is made here: every worker reads the list.
    (results / name).write_bytes(content() if callable(content) else content)
    tracemalloc.start()
    with pytest.raises(InputError, match=name):
        page_of(results)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300 << 20


def test_other_files_are_no_business_of_the_report(results: Path) -> None:
    (results / "notes.json").write_text('["mine"]')
    (results / "lost.npz").write_text("not an array")
    calibrations = unicast_alone(results.parent, {})
    assert write_report(results, results / "page.html", calibrations)["kernels"] == 1
