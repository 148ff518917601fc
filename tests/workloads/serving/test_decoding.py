"""The decoding set's calendars and sums."""

from hypothesis import given
from hypothesis import strategies as st

from workloads.machine.kv_levels import blocks_of
from workloads.serving.engine.decoding import DecodingSet
from workloads.serving.load.request import Request


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.integers(1, 40), st.integers(2, 40)),
            st.tuples(st.just("advance"), st.integers(1, 20), st.just(0)),
            st.tuples(st.just("leave"), st.integers(0, 50), st.just(0)),
        )
    )
)
def test_the_calendars_agree_with_counting_each_member(actions) -> None:
    decoding = DecodingSet()
    stored: dict[Request, int] = {}
    left: dict[Request, int] = {}
    for index, (action, first, second) in enumerate(actions):
        if action == "join":
            request = Request(index, 0, first, second)
            request.emitted = 1
            decoding.join(request)
            stored[request], left[request] = first, second - 1
        elif action == "leave" and stored:
            request = list(stored)[first % len(stored)]
            assert decoding.leave(request) == blocks_of(stored.pop(request))
            assert request.emitted == request.output_tokens - left.pop(request)
        elif action == "advance":
            for _ in range(first):
                stored = {request: tokens + 1 for request, tokens in stored.items()}
                left = {request: tokens - 1 for request, tokens in left.items()}
                done = [request for request, tokens in left.items() if not tokens]
                assert decoding.advance() == [(r, blocks_of(stored.pop(r))) for r in done]
                left = {request: tokens for request, tokens in left.items() if tokens}
        assert decoding.sequences == len(stored)
        assert decoding.context_tokens == sum(stored.values())
        assert decoding.blocks_due == sum(tokens % 16 == 0 for tokens in stored.values())
        for steps in (1, 3, 16, 37):
            due = sum(blocks_of(tokens + steps) - blocks_of(tokens) for tokens in stored.values())
            assert decoding.blocks_due_in(steps) == due
