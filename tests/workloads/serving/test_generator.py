"""Generated loads have the statistics they state."""

import numpy as np
import pytest
from scipy import stats

from tlm.errors import InputError
from workloads.serving.load.generator import WORKLOADS, Lengths, arrivals_ps, fit, generate, sample
from workloads.serving.load.traces import PS_PER_S

_ALL = [
    pytest.param(lengths, id=f"{name}-{part}")
    for name, workload in WORKLOADS.items()
    for part, lengths in zip(workload._fields, workload, strict=True)
]


@pytest.mark.parametrize("lengths", _ALL)
def test_the_fitted_distribution_has_exactly_the_published_statistics(lengths: Lengths) -> None:
    found = fit(lengths)
    fitted = stats.beta(found.a, found.b, loc=found.lowest, scale=found.width)
    assert found.p90 == pytest.approx(fitted.ppf(0.9))
    assert (fitted.mean(), fitted.ppf(0.9), fitted.std()) == pytest.approx(lengths, rel=1e-6)
    assert fitted.support()[0] >= 1


@pytest.mark.parametrize("lengths", _ALL)
def test_samples_achieve_them(lengths: Lengths) -> None:
    drawn = sample(lengths, 40_000, np.random.default_rng(1))
    achieved = (drawn.mean(), np.percentile(drawn, 90), drawn.std())
    assert achieved == pytest.approx(lengths, rel=0.02)
    assert drawn.min() >= 1


def test_requests_that_are_all_alike() -> None:
    """At once, as a batch is served offline."""
    trace = generate("fixed:100:200", 7, float("inf"), 1.0, 3)
    assert trace.prompt_tokens.tolist() == [100] * 7
    assert trace.output_tokens.tolist() == [200] * 7
    assert not trace.arrival_ps.any()
    for name in ("fixed", "fixed:0:4", "fixed:4", "fixed:4:x", "fixed:10000000:4"):
        with pytest.raises(InputError) as error:
            generate(name, 7, 1.0, 1.0, 3)
        assert str(error.value) == (
            f"workload: found '{name}'; write fixed:IN:OUT, tokens of every prompt and output, "
            "1 to 9999999, such as fixed:100:200"
        )


def test_statistics_that_no_distribution_has_are_refused() -> None:
    with pytest.raises(InputError, match="no beta distribution"):
        fit(Lengths(mean=100, p90=50_000, std=10))


@pytest.mark.parametrize("cv", [0.5, 1.0, 1.83])
def test_gaps_have_the_rate_and_the_variation(cv: float) -> None:
    gaps_s = np.diff(arrivals_ps(40_000, 4.0, cv, np.random.default_rng(2))) / PS_PER_S
    assert gaps_s.mean() == pytest.approx(1 / 4.0, rel=0.03)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.03)


def test_offline_requests_arrive_at_once() -> None:
    assert not generate("sharegpt", 50, float("inf"), 1.0, 3).arrival_ps.any()


def test_the_seed_decides_and_the_rate_does_not_change_lengths() -> None:
    first, again, faster, other = (
        generate("arxiv", 20, rate, 1.0, seed) for rate, seed in ((1, 5), (1, 5), (9, 5), (1, 6))
    )
    assert first.rows() == again.rows()
    assert first.prompt_tokens.tolist() == faster.prompt_tokens.tolist()
    assert first.prompt_tokens.tolist() != other.prompt_tokens.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workload": "books"}, "unknown workload 'books'; known: arxiv, fixed:IN:OUT, sharegpt"),
        ({"requests": 0}, "requests: found 0; allowed: 1 to 10000000"),
        ({"rate_rps": 0.0}, "rate: found 0.0; allowed: positive, or inf"),
        ({"rate_rps": float("nan")}, "rate: found nan"),
        ({"rate_rps": 1e-9}, "within 100 days"),
        ({"cv": -1.0}, "arrival cv: found -1.0; allowed: 0.01 to 100"),
    ],
)
def test_figures_out_of_range_are_refused(change: dict[str, object], message: str) -> None:
    arguments = {"workload": "arxiv", "requests": 9, "rate_rps": 1.0, "cv": 1.0, "seed": 0}
    with pytest.raises(InputError, match=message):
        generate(**(arguments | change))
