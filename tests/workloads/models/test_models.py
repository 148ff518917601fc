"""Models: shapes against published parameter counts, and refusals."""

import pytest
from pydantic import ValidationError

from tlm.errors import InputError
from workloads.models import Model, load_model, model_names


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama3-8b", 8.03e9),
        ("llama2-13b", 13.02e9),
        ("codellama-34b", 33.74e9),
        ("qwen2-72b", 72.71e9),
    ],
)
def test_parameter_count_is_the_published_one(name: str, parameters: float) -> None:
    model = load_model(name)
    assert model.weight_bytes / model.bytes_per_weight == pytest.approx(parameters, rel=1e-3)
    assert model.source


def test_llama3_keeps_128_kib_a_token() -> None:
    assert load_model("llama3-8b").kv_bytes_per_token == 131072


def test_every_shipped_model_loads() -> None:
    assert len(model_names()) >= 4
    for name in model_names():
        assert load_model(name).name == name


def test_unknown_model_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="unknown model 'gpt-7'; known: .*llama3-8b"):
        load_model("gpt-7")


@pytest.mark.parametrize("change", [{"kv_heads": 5}, {"layers": 0}, {"experts": 8}])
def test_a_shape_that_makes_no_sense_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Model.model_validate(load_model("llama3-8b").model_dump() | change)
