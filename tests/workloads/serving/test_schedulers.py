"""Each policy by a timeline small enough to write down; an iteration takes 1 s."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.workloads.serving.served import LoggedModel, serve, trace_of
from tlm.errors import InputError
from workloads.serving.engine.speculation import Speculation
from workloads.serving.load.request import Request
from workloads.serving.price.cost import Batch
from workloads.serving.schedulers import (
    Chunk,
    Chunked,
    Continuous,
    Layered,
    PdFusion,
    Plan,
    Queue,
    SchedulerOptions,
    Static,
    make_scheduler,
)


def test_static_serves_batches_one_after_the_other() -> None:
    model = LoggedModel()
    serve(trace_of((0, 10, 3), (0, 5, 2), (1.5, 20, 2)), Static(), model)
    assert model.batches == [
        Batch(((10, 0), (5, 0)), 0, 0, 2),
        Batch((), 2, 15, 2),
        Batch((), 1, 11, 1),
        Batch(((20, 0),), 0, 0, 1),
        Batch((), 1, 20, 1),
    ]


@pytest.mark.parametrize(("draft", "widest"), [(0, 14), (1, 12), (3, 8), (7, 0)])
def test_drafts_count_in_the_budget_of_chunked_prefill(draft: int, widest: int) -> None:
    # Two requests decode, draft + 1 tokens wide; the third prompt has what they leave of 16.
    speculation = Speculation(draft, 0.0) if draft else None
    model, trace = LoggedModel(), trace_of((0, 8, 9), (0, 8, 9), (0.5, 60, 1))
    serve(trace, Chunked(16), model, speculation=speculation)
    beside = [batch.prefill_tokens for batch in model.batches if batch.decode_sequences == 2]
    assert max(beside) == widest
    assert all(batch.new_tokens <= 16 for batch in model.batches)


def test_a_decoding_request_is_one_unit_of_pd_fusion_with_drafts_too() -> None:
    model, trace = LoggedModel(), trace_of((0, 8, 9), (0, 8, 9), (0.5, 60, 1))
    serve(trace, PdFusion(4, 10, 4), model, speculation=Speculation(3, 0.0))
    assert model.batches[2] == Batch(((8, 0),), 2, 17, 8, None, 4)


def test_layered_moves_prompts_through_groups_of_layers_beside_decoding() -> None:
    model = LoggedModel(layers=5)
    _, recorder = serve(trace_of((0, 10, 5), (0.5, 20, 2), (1.5, 30, 1)), Layered(2), model)
    assert model.batches == [
        Batch(((10, 0),), 0, 0, 0, range(0, 2)),
        Batch(((10, 0),), 0, 0, 1, range(2, 5)),
        # The first prompt decodes; the two that came meanwhile move together.
        Batch(((20, 0), (30, 0)), 1, 10, 1, range(0, 2)),
        Batch(((20, 0), (30, 0)), 1, 11, 3, range(2, 5)),
        Batch((), 2, 32, 2),
        Batch((), 1, 13, 1),
    ]
    assert recorder.summary()["ttft_s"]["mean"] == pytest.approx((2 + 3.5 + 2.5) / 3)


def test_layered_cuts_the_last_prompt_and_the_rest_leads_the_next_wavefront() -> None:
    model = LoggedModel(layers=2)
    serve(trace_of((0, 6, 1), (0, 9, 1), (0, 1, 1)), Layered(2, wavefront_tokens=10), model)
    assert model.batches == [
        Batch(((6, 0), (4, 0)), 0, 0, 0, range(0, 1)),
        Batch(((6, 0), (4, 0)), 0, 0, 1, range(1, 2)),
        Batch(((5, 4), (1, 0)), 0, 0, 0, range(0, 1)),
        Batch(((5, 4), (1, 0)), 0, 0, 2, range(1, 2)),
    ]


@pytest.mark.parametrize(
    ("tokens", "groups"),
    [(1, 1), (512, 1), (513, 2), (1024, 2), (1025, 4), (2048, 4), (4096, 8), (4097, 16)],
)
def test_layered_takes_its_groups_from_the_merged_tokens(tokens: int, groups: int) -> None:
    model = LoggedModel(layers=48)
    serve(trace_of((0, tokens, 1)), Layered(), model)
    assert len(model.batches) == groups
    assert [layer for batch in model.batches for layer in batch.prefill_layers or ()] == [
        *range(48)
    ]


def on_two_ranks(layers: int = 1) -> LoggedModel:
    model = LoggedModel(layers=layers)
    model.ranks = 2
    return model


def test_a_token_budget_is_that_of_each_rank() -> None:
    model = on_two_ranks()
    # 8 tokens each: a prompt is on one of the two, and shorter ones fill up the other.
    serve(trace_of((0, 20, 2), (0, 3, 2), (0, 9, 2)), Chunked(8), model)
    assert model.batches == [
        Batch(((8, 0), (3, 0), (5, 0)), 0, 0, 1),
        Batch(((7, 8), (4, 5)), 1, 3, 2),  # a decoding request takes one token of its rank
        Batch(((5, 15),), 1, 9, 2),
        Batch((), 1, 20, 1),
    ]


def test_layered_takes_its_groups_from_the_fullest_rank() -> None:
    for prompts, groups in (((512, 512), 1), ((600, 100), 2), ((400, 400, 400, 400), 2)):
        model = on_two_ranks(layers=4)
        serve(trace_of(*((0, tokens, 1) for tokens in prompts)), Layered(), model)
        assert len(model.batches) == groups


def test_units_and_places_are_those_of_each_rank() -> None:
    model = on_two_ranks()
    # Budget 5 of each: a decoding request takes 1, a chunk of 4 tokens 2.
    serve(trace_of((0, 10, 1), (0, 9, 1), (0, 1, 1)), PdFusion(4, 5, 2), model)
    assert [batch.prefills for batch in model.batches] == [
        ((8, 0), (8, 0)),
        ((2, 8), (1, 8), (1, 0)),
    ]
    model = on_two_ranks()
    serve(trace_of(*[(0, 1, 3)] * 5), Continuous(), model, max_sequences=2)
    assert model.batches[0].prefills == ((1, 0),) * 4


def test_layers_are_split_as_evenly_as_they_can_be() -> None:
    for layers, groups in ((48, 5), (7, 3), (3, 16)):
        model = LoggedModel(layers=layers)
        serve(trace_of((0, 9, 1)), Layered(groups), model)
        sizes = [len(batch.prefill_layers or ()) for batch in model.batches]
        assert sum(sizes) == layers
        assert len(sizes) == min(groups, layers)
        assert max(sizes) - min(sizes) <= 1


def test_layered_preempts_decoding_requests_and_never_the_wavefront() -> None:
    # 4 blocks: the first request fills its block while the wavefront has the other three.
    model = LoggedModel(layers=2)
    _, recorder = serve(
        trace_of((0, 15, 5), (1.5, 40, 1)), Layered(2), model, kv_tokens=64, max_sequences=2
    )
    # It gives way, and starts over with its two tokens.
    assert model.batches[2:5] == [
        Batch(((40, 0),), 1, 15, 1, range(0, 1)),
        Batch(((40, 0),), 0, 0, 1, range(1, 2)),
        Batch(((17, 0),), 0, 0, 0, range(0, 1)),
    ]
    assert recorder.preemptions == 1


def test_pd_fusion_pays_for_decoding_first_and_buys_chunks_with_the_rest() -> None:
    model = LoggedModel()
    # Budget 5: a decoding request takes 1, a chunk of 4 tokens 2.
    serve(trace_of((0, 10, 3), (0.5, 3, 3), (0.5, 8, 1)), PdFusion(4, 5, 2), model)
    assert model.batches == [
        Batch(((8, 0),), 0, 0, 0),
        Batch(((2, 8), (3, 0)), 0, 0, 2),
        Batch(((4, 0),), 2, 13, 2),  # two decode: what they leave buys one chunk, not two
        Batch(((4, 4),), 2, 15, 3),
    ]


@pytest.mark.parametrize(
    ("decoding", "ranks", "chunks"),
    [
        # Three micro-batches of 5 units, and chunks of 4.
        (0, 1, 3),
        (1, 1, 3),
        (2, 1, 2),  # both in the first one
        (6, 1, 2),
        (7, 1, 1),
        (11, 1, 1),
        (12, 1, 0),
        (40, 1, 0),
        (12, 2, 4),  # six on each rank
    ],
)
def test_decoding_fills_micro_batches_of_pd_fusion_one_by_one(
    decoding: int, ranks: int, chunks: int
) -> None:
    waiting = iter([Request(number, 0, 8, 1) for number in range(9)])
    queue: Any = SimpleNamespace(
        prefilling=(), decoding=decoding, ranks=ranks, admit=lambda: next(waiting, None)
    )
    plan = PdFusion(8, 5, 4, micro_batches=3).plan(queue)
    assert len(plan.chunks) == chunks


def test_pd_fusion_computes_no_prompt_when_decoding_exceeds_the_budget() -> None:
    model = LoggedModel()
    serve(trace_of((0, 1, 3), (0, 1, 3), (0.5, 8, 1)), PdFusion(4, 3, 2), model)
    counts = [(len(batch.prefills), batch.decode_sequences) for batch in model.batches]
    assert counts == [(1, 0), (1, 1), (0, 2), (1, 1), (1, 0)]


def test_a_custom_policy_may_let_decoding_wait() -> None:
    class PromptsFirst:
        """Prompts alone, whole; decoding when there is none."""

        keeps_prompts = False

        def plan(self, queue: Queue) -> Plan:
            request = queue.admit()
            if request is None:
                return Plan()
            return Plan([Chunk(request, request.left_to_prefill)], decode=False)

    model = LoggedModel()
    serve(trace_of((0, 10, 3), (0, 5, 1), (1.5, 7, 1)), PromptsFirst(), model)
    assert model.batches == [
        Batch(((10, 0),), 0, 0, 1),
        Batch(((5, 0),), 0, 0, 1),
        Batch(((7, 0),), 0, 0, 1),
        Batch((), 1, 10, 1),
        Batch((), 1, 11, 1),
    ]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("best", {}, "unknown scheduler 'best'; known: chunked, continuous, layered, pd-fusion"),
        ("chunked", {"token_budget": 0}, "token budget: found 0; allowed: 1 or more"),
        ("continuous", {"token_budget": 64}, "found 64; scheduler 'continuous' has none"),
        ("static", {"layer_groups": 4}, "layer groups: found 4; scheduler 'static' has none"),
        ("layered", {"layer_groups": 0}, "layer groups: found 0; allowed: 1 or more"),
        ("layered", {"token_budget": 0}, "token budget: found 0; allowed: 1 or more"),
        ("pd-fusion", {"token_budget": 0}, "token budget: found 0; allowed: 1 or more"),
        (
            "pd-fusion",
            {"budget_units": 8, "chunk_units": 9},
            "chunk units: found 9; allowed: 1 to the budget of 8",
        ),
    ],
)
def test_unusable_schedulers_are_refused(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError) as refused:
        make_scheduler(name, SchedulerOptions(**options))
    assert message in str(refused.value)
