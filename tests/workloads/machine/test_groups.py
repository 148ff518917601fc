"""Groups of tiles: where they lie, who hands on to whom, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlm.chips import Chip, load_chip
from tlm.errors import InputError
from workloads.machine.groups import (
    PD_PLACEMENTS,
    Groups,
    Parallel,
    groups_on,
    hand_over_moves,
    most_tensor,
    pools_on,
)
from workloads.machine.order import PLACEMENTS

CHIP = load_chip("npusim-large")


def tiles_of(groups: Groups) -> list[tuple[int, int]]:
    """Of all pipelines."""
    return [
        tile
        for pool in groups.pipelines
        for pipeline in pool
        for stage in range(len(pipeline.stages))
        for tile in pipeline.order(stage)
    ]


@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.integers(1, 9),
    st.sampled_from(PLACEMENTS),
)
def test_tiles_have_one_group_at_most(tensor: int, pipeline: int, placement: str) -> None:
    parallel = Parallel(tensor=tensor, pipeline=pipeline, placement=placement)
    if tensor * pipeline > 64:
        with pytest.raises(InputError, match="--tp, --pp, --dp: found"):
            groups_on(CHIP, parallel)
        return
    groups = groups_on(CHIP, parallel)
    (pipelines,) = groups.pipelines
    tiles = tiles_of(groups)
    assert len(set(tiles)) == len(tiles) == tensor * pipeline * len(pipelines)
    assert groups.idle_tiles == 64 - len(tiles)
    assert len(pipelines) == 64 // (tensor * pipeline)
    assert all(0 <= row < 8 and 0 <= col < 8 for row, col in tiles)


def test_seven_stages_leave_a_tile() -> None:
    """The paper's serving: 63 of 64 cores, pipelines of 7 stages."""
    groups = groups_on(CHIP, Parallel(pipeline=7))
    assert (len(groups.pipelines[0]), groups.idle_tiles) == (9, 1)


def test_a_stage_hands_on_to_its_neighbour() -> None:
    """Groups of 2 x 2 in two rows, there and back; all replicas at once."""
    groups = groups_on(CHIP, Parallel(tensor=4, pipeline=8, placement="ring"))
    (first, second) = groups.pipelines[0]
    assert [(each.row, each.col) for each in first.stages] == [
        (0, 0), (0, 2), (0, 4), (0, 6), (2, 6), (2, 4), (2, 2), (2, 0)
    ]  # fmt: skip
    moves = hand_over_moves([first, second], 3)
    assert moves[:4] == (
        ((0, 6), (2, 6)), ((0, 7), (2, 7)), ((1, 7), (3, 7)), ((1, 6), (3, 6))
    )  # fmt: skip
    assert len(moves) == 8


@given(st.integers(1, 70), st.integers(1, 5), st.sampled_from(PLACEMENTS), st.integers(1, 64))
def test_groups_share_tiles(pipeline: int, replicas: int, placement: str, tiles: int) -> None:
    """They lie on the chip, and no larger ones of those allowed would."""
    allowed = [1, 2, 4, 8, 16, 32]
    parallel = Parallel(pipeline=pipeline, replicas=replicas, placement=placement)
    tensor = most_tensor(CHIP, parallel, tiles, allowed)
    groups = pipeline * replicas
    assert tensor in allowed
    assert tensor == 1 or tensor * groups <= tiles
    for each in allowed:
        wanted = replace(parallel, tensor=each)
        if each == tensor and tensor * groups <= tiles:
            assert groups_on(CHIP, wanted).idle_tiles == 64 - tensor * groups
        elif each > tensor and each * groups <= tiles:
            with pytest.raises(InputError):
                groups_on(CHIP, wanted)


@pytest.mark.parametrize(
    ("placement", "order"),
    [("pp-first", "PPPPDD"), ("dp-first", "PPDPPD"), ("sides", "PPDDPP")],
)
def test_pools_lie_as_asked(placement: str, order: str) -> None:
    parallel = Parallel(tensor=8)
    groups = pools_on(CHIP, parallel, parallel, (32, 16), placement)
    rows = {
        pipeline.stages[0].row: name
        for name, pool in zip("PD", groups.pipelines, strict=True)
        for pipeline in pool
    }
    assert "".join(rows[row] for row in range(6)) == order
    assert groups.idle_tiles == 16


@given(
    st.integers(1, 62), st.integers(1, 62), st.sampled_from(PD_PLACEMENTS), st.sampled_from([1, 2])
)
def test_pools_of_any_number_of_tiles(
    prefill: int, decode: int, placement: str, tensor: int
) -> None:
    pools = Parallel(of="--prefill-"), Parallel(tensor=tensor, of="--decode-")
    if prefill + decode > 64 or decode < tensor:
        with pytest.raises(InputError, match="allowed"):
            pools_on(CHIP, *pools, (prefill, decode), placement)
        return
    try:
        groups = pools_on(CHIP, *pools, (prefill, decode), placement)
    except InputError as error:  # no two tiles side by side are left for one more
        assert "beside the other groups" in str(error)
        return
    tiles = tiles_of(groups)
    assert len(set(tiles)) == len(tiles)
    assert len(groups.pipelines[0]) == prefill
    assert len(groups.pipelines[1]) <= decode // tensor


def small() -> Chip:
    """Two rows of three."""
    grid = CHIP.grid.model_copy(update={"rows": 2, "cols": 3})
    return CHIP.model_copy(update={"grid": grid})


@pytest.mark.parametrize(
    ("parallel", "message"),
    [
        (
            {"tensor": 2, "pipeline": 2, "replicas": 2},
            "--tp, --pp, --dp: found 2 x 2 x 2 = 8 tiles; allowed on 'npusim-large': 6 tiles "
            "together",
        ),
        (
            {"tensor": 2, "replicas": 3},
            "--tp, --pp, --dp: found 2 x 1 x 3; allowed on the 2x3 tiles of 'npusim-large' with "
            "placement linear: 2 such pipelines beside the other groups",
        ),
        (
            {"tensor": 5},
            "--tp 5: placement linear: found 5 tiles; allowed on 3 columns: rows as long as each "
            "other",
        ),
    ],
)
def test_what_does_not_lie_on_a_chip(parallel: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as error:
        groups_on(small(), Parallel(**parallel))
    assert str(error.value) == message


@pytest.mark.parametrize(("rows", "cols"), [(1, 8), (2, 4), (4, 2), (8, 1)])
def test_rows_of_a_group_are_a_choice_beside_the_order(rows: int, cols: int) -> None:
    parallel = Parallel(tensor=8, pipeline=8, placement="linear", stage_rows=rows)
    ((pipeline,),) = groups_on(CHIP, parallel).pipelines
    assert {(each.rows, each.cols) for each in pipeline.stages} == {(rows, cols)}
    first = pipeline.stages[0]
    inside = [(first.row + row, first.col + col) for row in range(rows) for col in range(cols)]
    assert [*pipeline.order(0)] == inside


@pytest.mark.parametrize("rows", [3, 16])
def test_rows_that_a_group_cannot_have(rows: int) -> None:
    with pytest.raises(InputError) as error:
        groups_on(CHIP, Parallel(tensor=16, stage_rows=rows))
    assert str(error.value) == (
        f"--tp 16: --stage-rows: found {rows}; allowed: equal rows on 8x8 tiles"
    )


def test_numbers_below_one() -> None:
    with pytest.raises(InputError) as error:
        Parallel(pipeline=0, of="--decode-")
    assert str(error.value) == "--decode-pp: found 0; allowed: 1 or more"
