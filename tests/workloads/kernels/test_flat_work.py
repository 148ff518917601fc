"""What FlatAttention's groups have to do in all is what their programs do, item by item."""

from hypothesis import given
from hypothesis import strategies as st

from tlm.chips import load_chip
from tlm.chips.parts import noc_timing
from workloads.kernels.attention.flat_plan import FlatPlan
from workloads.kernels.attention.flat_search import plan_flat
from workloads.kernels.attention.shape import AttentionShape
from workloads.machine.place import chip_place

CHIP = load_chip("flat32").for_dtype("fp16")
PLACE = chip_place(CHIP, (8, 8), noc_timing(CHIP), 16, 16, memory=True)


def _plan(heads: int, sharers: int, new: int, before: int, group: tuple[int, int]) -> FlatPlan:
    sizes = heads * sharers, heads, new, new + before
    return plan_flat(AttentionShape(1, *sizes, 64, 64, causal=True), PLACE, group=group)


@given(
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(1, 300),
    st.integers(0, 300),
    st.sampled_from([(1, 1), (2, 2), (2, 4), (4, 2), (8, 8)]),
)
def test_totals_are_those_of_the_items_of_all_groups(
    heads: int, sharers: int, new: int, before: int, group: tuple[int, int]
) -> None:
    plan = _plan(heads, sharers, new, before, group)
    totals = plan.totals
    streams = items = loads = masks = parts = groups = 0
    for at, core in plan.cores:
        number, order = len(at.down) * len(at.across), core.items()
        brought = [item.brought for item in order if item.brought is not None]
        groups += number
        streams += number * core.streams
        items += number * len(order)
        loads += number * sum(item.brings for item in order)
        masks += number * len(brought)
        tiles = [len(plan.partly[mask]) if core.parts else 1 for mask in brought]
        parts += number * sum(tiles)
    assert totals.groups == groups
    assert totals.all_streams == streams == heads * plan.q_blocks
    assert (totals.all_items, totals.all_loads) == (items, loads)
    assert (totals.masks, totals.parts) == (masks, parts)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 300), st.integers(0, 300))
def test_no_group_has_more_to_do_than_the_busiest(
    heads: int, sharers: int, new: int, before: int
) -> None:
    plan = _plan(heads, sharers, new, before, (2, 2))
    own, work = plan.core, plan.work
    assert work.streams == own.streams
    assert work.masked == sum(map(len, own.masks))
    assert work.items == sum(own.blocks) == max(sum(core.blocks) for _, core in plan.cores)
