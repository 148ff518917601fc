"""A model on tensor-parallel groups: kernels of a layer, relayouts, stages, memory, prices."""

from collections import Counter
from dataclasses import replace

import pytest

from tlm.calibrated import stale_allowed
from tlm.chips import Chip, load_chip
from tlm.engines.lt import run_lt
from tlm.errors import InputError
from workloads.kernels.catalogue import KERNELS
from workloads.kernels.gemm.partition_plan import PartitionPlan
from workloads.kernels.vector.exchange import ExchangePlan
from workloads.machine.groups import Parallel, groups_on
from workloads.models import find_model
from workloads.models.operators import projections
from workloads.serving.price.cost import Batch
from workloads.serving.price.group_mapping import GroupKernel
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.parts import Decode, Kept, Layer, Prompt, StageHandOver

CHIP = load_chip("npusim-large")
MODEL = find_model("qwen3-4b")


def price(chip: Chip = CHIP, model: str = "qwen3-4b", **parallel: int | str) -> GroupsPrice:
    """A model on pipelines of a chip."""
    shape, named = find_model(model), Parallel(**parallel)
    return GroupsPrice(shape, groups_on(chip, named), named)


def kernels_of(found: GroupsPrice, part: Layer | Prompt | Decode) -> list[GroupKernel]:
    return found.kernels.of(part)


def products(kernels: list[GroupKernel]) -> dict[str, str | None]:
    """Partition of each product."""
    return {
        each.operator.name: each.ground.choices.partition
        for each in kernels
        if isinstance(each.mapped.plan, PartitionPlan)
    }


@pytest.mark.parametrize("tokens", [1, 8, 300])
@pytest.mark.parametrize("partition", ["input", "mn", "k", "2d", "auto"])
def test_a_layer_computes_all_of_its_products(partition: str, tokens: int) -> None:
    """Multiply-accumulates of the cores are those of the model, padding apart."""
    found = price(tensor=4, pipeline=16, partition=partition)
    kernels = kernels_of(found, Layer(tokens, False))
    wanted = {
        each.name: each.macs
        for each in projections(MODEL, tokens, experts=None)
        if hasattr(each, "macs")
    }
    done: Counter[str] = Counter()
    for each in kernels:
        if isinstance(each.mapped.plan, PartitionPlan):
            macs = KERNELS["partitioned-gemm"].macs(each.mapped.sizes, each.mapped.choices)
            done[each.operator.name] += macs * each.times
            assert each.mapped.plan.tile_bytes <= found.kernels.mapping.group.tile_bytes
    assert done.keys() == wanted.keys()
    for name, macs in wanted.items():
        assert macs <= done[name] <= 1.1 * macs + 10**6


def test_sums_everywhere_need_no_relayout() -> None:
    """By K all cores have all rows after a product, and its columns are a core's heads."""
    kernels = kernels_of(price(tensor=4, partition="k", pipeline=16), Layer(64, False))
    assert not [each for each in kernels if isinstance(each.mapped.plan, ExchangePlan)]
    assert set(products(kernels).values()) == {"k"}


def test_rows_are_exchanged_for_heads() -> None:
    """By M and N a core has rows of its own: to attention and back, 3/4 of what it has moves."""
    kernels = kernels_of(price(tensor=4, partition="mn", pipeline=16), Layer(64, False))
    moved = {
        each.operator.name: each.mapped.plan.moved.delivered
        for each in kernels
        if isinstance(each.mapped.plan, ExchangePlan)
    }
    heads = 4096 + 2 * 1024
    assert moved == {
        "relayout for attention": 64 * heads * 2 * 3 // 4,
        "relayout for attention output": 64 * 4096 * 2 * 3 // 4,
    }


def test_a_2d_partition_exchanges_in_columns_of_cores() -> None:
    kernels = kernels_of(price(tensor=4, partition="2d", pipeline=16), Layer(64, False))
    moved = [each.mapped.plan for each in kernels if isinstance(each.mapped.plan, ExchangePlan)]
    assert [len(plan.rounds) for plan in moved] == [1, 1]  # with one other core
    assert moved[0].rounds[0].part == (32, 6144 // 4)
    (move, *_) = moved[0].rounds[0].moves
    assert move == ((0, 0), (0, 2))


def test_auto_is_as_fast_as_the_fastest() -> None:
    def cycles(partition: str, tokens: int) -> int:
        found = price(tensor=4, partition=partition, pipeline=16)
        return sum(each.cycles for each in kernels_of(found, Layer(tokens, False)))

    for tokens in (4, 1500):
        least = min(cycles(partition, tokens) for partition in ("mn", "k", "2d"))
        assert cycles("auto", tokens) <= least


def test_a_tile_has_its_share_of_the_heads() -> None:
    found = price(tensor=4, pipeline=16)
    (prompt,) = kernels_of(found, Prompt(128, 0, None))
    assert prompt.mapped.sizes == (1, 8, 2, 128, 128, 128, 128)
    assert prompt.ground.tiles == 4
    (decode,) = kernels_of(price(tensor=16, pipeline=4), Decode(5, 1, 99, None))
    assert decode.mapped.sizes == (5, 2, 1, 1, 100, 128, 128)  # two tiles have the same keys


def test_programs_take_the_cycles_of_the_closed_forms() -> None:
    """Of all kernels of a layer and a hand-over."""
    with stale_allowed():
        for partition in ("k", "mn", "2d"):
            found = price(tensor=4, pipeline=16, partition=partition)
            for part in (Layer(32, False), StageHandOver(32)):
                for each in found.kernels.of(part):
                    place, mapped = each.ground.place, each.mapped
                    program = KERNELS[mapped.kernel].program(mapped.plan)
                    lt = run_lt(program, place.timing, offchip=place.offchip).cycles
                    assert mapped.cycles == pytest.approx(lt, rel=0.05), each.operator.name


def test_a_token_passes_all_stages() -> None:
    """One request takes the time of all stages; as many as there are stages, not much more."""
    found = price(pipeline=6, tensor=2)

    def seconds(sequences: int) -> float:
        return found.cost(Batch((), sequences, 200 * sequences, sequences)).seconds

    stages = found.planner.planned(Batch((), 1, 200, 1)).runs[0]
    alone = sum(
        block.times * found.prices.of(part).cycles
        for stage in stages
        for block in stage
        for phase in block.phases
        for part in phase.parts
    )
    assert seconds(1) == pytest.approx(alone / CHIP.clock_hz)
    assert seconds(1) <= seconds(6) <= 2 * seconds(1)  # the slowest stage sets the pace
    assert seconds(60) > seconds(6)
    parts = [part for part, _ in found.planner.planned(Batch((), 1, 200, 1)).counted()]
    assert len([part for part in parts if isinstance(part, StageHandOver)]) == 5


def test_micro_batches_of_a_size() -> None:
    """With 5 requests at most, 100 pass the stages in 20 turns, and 50 in half the time."""
    found = price(pipeline=7, micro_batch=5)
    runs = found.planner.planned(Batch((), 100, 20_000, 100)).runs
    assert len(runs) == 20
    sizes = {part.sequences for run in runs for stage in run for block in stage
             for part in block.phases[0].parts if isinstance(part, Decode)}  # fmt: skip
    assert sizes == {5}
    long, short = (found.cost(Batch((), n, 200 * n, n)).seconds for n in (100, 50))
    assert long == pytest.approx(2 * short, rel=0.01)
    with pytest.raises(InputError, match="--micro-batch: found 0; allowed: 1 or more"):
        Parallel(micro_batch=0)


def test_prompts_fill_the_pipeline() -> None:
    found = price(pipeline=8)
    one, eight = (found.cost(Batch(((128, 0),) * n, 0, 0, n)).seconds for n in (1, 8))
    assert one < eight < 2 * one


def test_layered_prefill_computes_some_layers() -> None:
    found = price(pipeline=4, tensor=2)
    whole = Batch(((256, 0),), 4, 800, 5)
    half = found.cost(whole._replace(prefill_layers=range(18), logit_rows=4)).seconds
    decoding = found.cost(Batch((), 4, 800, 4)).seconds
    assert decoding < half < found.cost(whole).seconds


def test_keys_and_values_have_what_weights_leave() -> None:
    """Of the stage that leaves least: 4 GiB a tile; the embedding is in two stages of four."""
    found = price(tensor=2, pipeline=4)
    weights = found.stage_bytes()
    assert sum(weights) == pytest.approx(MODEL.weight_bytes + 2 * 151936 * 2560, rel=1e-3)
    left = (2 * 4 * 2**30 - max(weights)) // (9 * MODEL.kept_elements * 2)
    assert found.kv_capacity_tokens == left // 16 * 16
    copied = price(tensor=16, pipeline=4)
    assert copied.kv_bytes_per_token == 2 * MODEL.kv_bytes_per_token


def test_replicas_of_one_stage_share_the_memory_of_a_chip() -> None:
    """Where all tiles share it, each has its part of what the weights leave."""
    chip = load_chip("flat32")
    found = price(chip, tensor=16, pipeline=4)
    assert found.kv_capacity_tokens > 0
    memory = chip.memory
    assert memory is not None
    share = 64 / 1024
    left = (memory.capacity_bytes - MODEL.weight_bytes) * share
    assert found.kv_capacity_tokens == int(left) // found.kv_bytes_per_token // 16 * 16


def test_energy_is_that_of_all_tiles() -> None:
    """Twice the tiles share the same products: about the same energy, not half."""
    batch = Batch((), 8, 8 * 300, 8)
    two, four = (price(tensor=n, pipeline=4, partition="k").cost(batch).energy_j for n in (2, 4))
    assert two is not None
    assert four == pytest.approx(two, rel=0.3)


def test_experts_run_in_the_group() -> None:
    found = price(model="qwen3-30b-a3b", tensor=4, pipeline=16)
    kernels = kernels_of(found, Layer(16, True))
    (up,) = (each for each in kernels if each.operator.name == "expert gate and up")
    assert up.times >= 40  # experts that 16 tokens need
    assert found.cost(Batch((), 16, 1600, 16)).expert_bytes > 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"tensor": 12},
            "--tp: found 12; allowed for the 32 heads of queries and 8 of keys of 'qwen3-4b': 1, "
            "2, 4, 8, 16, 32",
        ),
        (
            {"pipeline": 37},
            "--pp: found 37; allowed for 'qwen3-4b': 1 to its 36 layers",
        ),
        (
            {"tensor": 2, "partition": "2d", "pipeline": 4},
            "--partition: found 2d on 2 tiles; allowed: on a number of tiles that is a product of "
            "two above 1",
        ),
        (
            {"tensor": 1, "pipeline": 1},
            "--tp, --pp: found 1 and 1; allowed for 'qwen3-4b' on 'npusim-large': more of both "
            "together, as the weights of a stage take 3749950464 bytes more than its tiles' memory",
        ),
        (
            {"model": "deepseek-v3-671b", "tensor": 2},
            "--tp: found 2; allowed for 'deepseek-v3-671b': 1, as its compressed cache has no "
            "heads to deal out",
        ),
    ],
)
def test_what_is_refused(asked: dict[str, int | str], message: str) -> None:
    with pytest.raises(InputError) as error:
        price(**asked)
    assert str(error.value) == message


def test_a_product_that_fits_no_tile() -> None:
    found = price(tensor=4, pipeline=16, partition="k")
    found.kernels.mapping.group = replace(found.kernels.mapping.group, tile_bytes=1000)
    with pytest.raises(InputError, match="--tp: found 4; allowed: more tiles, as no piece of the"):
        kernels_of(found, Layer(8, False))


def test_weights_of_another_width() -> None:
    named = Parallel(tensor=4)
    with pytest.raises(InputError, match="--tp: found 4 with weights of 1 bytes; allowed with"):
        GroupsPrice(MODEL.in_one_width("fp8"), groups_on(CHIP, replace(named)), named)


def test_equal_iterations_are_planned_once_for_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found, planned = price(tensor=4, pipeline=4), []
    plan = found.planner.planned
    monkeypatch.setattr(
        found.planner, "planned", lambda batch: planned.append(batch) or plan(batch)
    )
    batches = [Batch(((100, 0),), 3, 300 + context, 4) for context in (0, 0, 90, 0)]
    centre = [found.cost(batch) for batch in batches]
    assert centre[0] == centre[1] == centre[3] != centre[2]
    assert [each.made_of == centre[0].made_of for each in centre] == [True, True, False, True]
    for end in ("low", "high"):
        there = [found.at_end(end).cost(batch) for batch in batches]
        assert [each.energy_j for each in there] == [each.energy_j for each in centre]
        assert all(not each.made_of for each in there)
        off = [one.seconds - other.seconds for one, other in zip(there, centre, strict=True)]
        assert max(off) < 0 if end == "low" else min(off) > 0
    assert len(planned) == 2
    # What is kept is bounded, and what is planned again is what it was.
    monkeypatch.setattr("workloads.serving.price.planned_price._MOST_PLANS", 2)
    assert found.cost(Batch((), 1, 100, 1)).seconds > 0
    assert found.cost(batches[0]) == centre[0]
    assert len(planned) == 4


def test_products_whose_weights_tiles_keep_have_the_errors_of_such() -> None:
    kernels = price(pipeline=7).kernels.of(Kept(Layer(16, False)))
    kept = [each for each in kernels if each.mapped.choices.resident]
    assert {each.ground.variant(each.mapped) for each in kept} == {"resident"}
    assert {each.ground.variant(each.mapped) for each in kernels} > {"resident"}
