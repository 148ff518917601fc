"""Reading request traces: both forms, and every way a file can be wrong."""

import time
from pathlib import Path

import numpy as np
import pytest

from tlm.errors import InputError
from workloads.serving.load.traces import MAX_TOKENS, load_trace

_SECONDS = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
_STAMPS = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
_REAL = Path(__file__).parents[3] / "../shared/traces"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "load.csv"


def test_seconds(file: Path) -> None:
    file.write_text(_SECONDS + "5.0,374,44\n\n9.314579,396,109\n")
    assert load_trace(file).rows() == [(0, 374, 44), (4_314_579_000_000, 396, 109)]


def test_time_stamps_keep_all_seven_decimals(file: Path) -> None:
    file.write_text(
        _STAMPS
        + "2023-11-16 23:59:59.6805900,374,44\n"
        + "2023-11-17 00:00:00.6805901,396,109\n"
        + "2023-11-17 00:00:01,1,1\n"
    )
    trace = load_trace(file)
    assert trace.arrival_ps.tolist() == [0, 1_000_000_100_000, 1_319_410_000_000]


def test_time_stamps_may_have_an_offset(file: Path) -> None:
    file.write_text(_STAMPS + "2024-05-10 02:00:00.5+02:00,1,1\n2024-05-10T00:00:01Z,1,1\n")
    assert load_trace(file).arrival_ps.tolist() == [0, 500_000_000_000]


def test_bom_spaces_quotes_other_columns_and_their_order_do_not_matter(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbfuser,num_decode_tokens, num_prefill_tokens ,arrived_at\r\n"
        b'"a,b", 2 ,"3",1e0\r\n'
    )
    assert load_trace(file).rows() == [(0, 3, 2)]


def test_rows_are_sorted_by_arrival_and_ties_stay_in_order(file: Path) -> None:
    file.write_text(_SECONDS + "3,1,1\n1,2,2\n3,3,3\n")
    assert load_trace(file).prompt_tokens.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("nan,1,1", "line 3: arrived_at: found 'nan'; allowed: seconds from 0 to 1e+10"),
        ("inf,1,1", "line 3: arrived_at: found 'inf'"),
        ("1e999,1,1", "line 3: arrived_at: found '1e999'"),
        ("-1,1,1", "line 3: arrived_at: found '-1'"),
        ("1_0,1,1", "line 3: arrived_at: found '1_0'"),
        (",1,1", "line 3: arrived_at: found ''"),
        ("1,0,1", "line 3: num_prefill_tokens: found '0'; allowed: a whole number from 1 to"),
        ("1,-5,1", "line 3: num_prefill_tokens: found '-5'"),
        ("1,12.5,1", "line 3: num_prefill_tokens: found '12.5'"),
        ("1,ten,1", "line 3: num_prefill_tokens: found 'ten'"),
        ("1,٣,1", "line 3: num_prefill_tokens: found '٣'"),
        (f"1,{MAX_TOKENS + 1},1", f"line 3: num_prefill_tokens: found '{MAX_TOKENS + 1}'"),
        ("1," + "9" * 5000 + ",1", "line 3: num_prefill_tokens: found '9999"),
        ("1,1,0", "line 3: num_decode_tokens: found '0'"),
        ("1,1,", "line 3: num_decode_tokens: found ''"),
        ("1,1", "line 3: found 2 cells; allowed: 3, the columns of line 1"),
        ("1,1,1,,1", "line 3: found 5 cells; allowed: 3, the columns of line 1"),
        ("1,1,1,1", "line 3: found 4 cells; allowed: 3, the columns of line 1"),
        ("9e9,1,1", "arrivals span more than 100 days"),
    ],
)
def test_a_bad_row_is_named_by_file_line_column_and_value(
    file: Path, row: str, message: str
) -> None:
    file.write_text(f"{_SECONDS}0,1,1\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_trace(file)
    assert str(caught.value).startswith(f"load.csv: {message}")


@pytest.mark.parametrize(
    "stamp", ["2023-13-01 00:00:00", "2023-11-16", "16/11/2023 18:15:46", "12.5", "", "NaT"]
)
def test_a_bad_time_stamp_is_named(file: Path, stamp: str) -> None:
    file.write_text(f"{_STAMPS}{stamp},1,1\n")
    with pytest.raises(InputError) as caught:
        load_trace(file)
    assert str(caught.value) == (
        f"load.csv: line 2: TIMESTAMP: found '{stamp}'; "
        "allowed: a time like 2023-11-16 18:15:46.6805900"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: columns: found nothing; allowed: arrived_at,"),
        (b"a,b,c\n1,2,3\n", "line 1: columns: found a,b,c; allowed: arrived_at,"),
        (b"arrived_at,arrived_at,num_prefill_tokens,num_decode_tokens\n", "line 1: columns"),
        (_SECONDS.encode(), "holds no requests"),
        (_SECONDS.encode("utf-16"), "is not UTF-8 text (byte 0)"),
        (b"arrived_at\xff,b,c\n", "is not UTF-8 text"),
        (_SECONDS.encode() + b"1,1," + b"1" * 200_000, "is not a CSV table"),
    ],
)
def test_a_bad_file_is_named(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_trace(file)
    assert str(caught.value).startswith(f"load.csv: {message}")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            load_trace(path)


def test_head_and_scale(file: Path) -> None:
    file.write_text(_SECONDS + "0,1,1\n1,2,2\n4,3,3\n")
    trace = load_trace(file)
    assert trace.head(2).prompt_tokens.tolist() == [1, 2]
    assert trace.scaled(4.0).arrival_ps.tolist() == [0, 250_000_000_000, 10**12]
    for scale in (0.0, -1.0, float("nan"), 1e-9):
        with pytest.raises(InputError, match="rate scale"):
            trace.scaled(scale)


def test_twenty_thousand_rows_take_well_under_half_a_second(file: Path) -> None:
    rows = "".join(f"2023-11-16 18:15:{i % 60:02}.6805900,{i + 1},44\n" for i in range(20_000))
    file.write_text(_STAMPS + rows)
    begin = time.process_time()
    assert len(load_trace(file)) == 20_000
    assert time.process_time() - begin < 0.5


@pytest.mark.skipif(not _REAL.is_dir(), reason="the public traces are not here")
@pytest.mark.parametrize(
    ("name", "requests", "prompt_mean"), [("conversation", 19366, 1154.7), ("code", 8819, 2047.8)]
)
def test_public_traces(name: str, requests: int, prompt_mean: float) -> None:
    trace = load_trace(_REAL / f"azure_llm_2023_{name}.csv")
    assert len(trace) == requests
    assert trace.prompt_tokens.mean() == pytest.approx(prompt_mean, abs=0.1)
    assert np.all(np.diff(trace.arrival_ps) >= 0)


_LINE = '{"input_toks": 374, "output_toks": 44, "arrival_time_ns": 5000000000, "user": [1]}\n'


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    return tmp_path / "load.jsonl"


def test_json_lines(jsonl: Path) -> None:
    late = '{"arrival_time_ns": 5000000007, "input_toks": 3.0, "output_toks": 1}'
    jsonl.write_text(f"{late}\n\n{_LINE}")
    assert load_trace(jsonl).rows() == [(0, 374, 44), (7000, 3, 1)]


def test_an_ending_in_capitals_is_the_same_ending(tmp_path: Path) -> None:
    path = tmp_path / "LOAD.JSONL"
    path.write_text(_LINE)
    assert load_trace(path).rows() == [(0, 374, 44)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: is not JSON (Expecting property name"),
        ("[" * 100_000, "line 2: is not JSON (nested too deep)"),
        ("[1]", "line 2: found '[1]'; allowed: an object"),
        ("{}", "line 2: arrival_time_ns: found nothing; allowed: a whole number from 0 to 1"),
        (_LINE.replace("374", "NaN"), "line 2: is not JSON (NaN is no number)"),
        (_LINE.replace("374", "1e999"), "line 2: input_toks: found inf; allowed: a whole number"),
        (_LINE.replace("374", "0"), "line 2: input_toks: found 0; allowed: a whole number from 1"),
        (_LINE.replace("374", "true"), "line 2: input_toks: found True; allowed: a whole number"),
        (_LINE.replace("374", '"9"'), "line 2: input_toks: found '9'; allowed: a whole number"),
        (_LINE.replace("374", "{}"), "line 2: input_toks: found dict; allowed: a whole number"),
        (_LINE.replace("374", "1" * 60), "line 2: input_toks: found a number of more than 40 dig"),
        (_LINE.replace("374", "1" * 5000), "line 2: is not JSON (Exceeds the limit"),
        (_LINE.replace("5000000000", "-1"), "line 2: arrival_time_ns: found -1; allowed: a whole"),
        (_LINE.replace("5000000000", "0.5"), "line 2: arrival_time_ns: found 0.5; allowed"),
        (_LINE.replace("5000000000", "9000000000000000000"), "arrivals span more than 100 days"),
        (" " * (1 << 20), "line 2: found 1048576 characters or more; allowed: fewer"),
    ],
)
def test_a_bad_json_line_is_named_by_file_line_and_field(
    jsonl: Path, line: str, message: str
) -> None:
    jsonl.write_text(f"{_LINE}{line}\n")
    with pytest.raises(InputError) as caught:
        load_trace(jsonl)
    assert str(caught.value).startswith(f"load.jsonl: {message}")
    assert len(str(caught.value)) < 200
