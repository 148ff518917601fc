"""Models: shapes against published parameter counts, and refusals."""

from typing import Any

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
        ("qwen3-1.7b", 1.7206e9),
        ("qwen3-4b", 4.0225e9),
        ("qwen3-8b", 8.1907e9),
        ("qwen3-14b", 14.7683e9),
        ("qwen3-32b", 32.7621e9),
        ("qwen3-30b-a3b", 30.5321e9),
        ("qwen3-235b-a22b", 235.0936e9),
        ("gpt-oss-20b", 20.91e9),
        ("gpt-oss-120b", 116.83e9),
        ("deepseek-v3-671b", 671.03e9),
    ],
)
def test_parameter_count_is_the_published_one(name: str, parameters: float) -> None:
    model = load_model(name)
    assert model.parameters == pytest.approx(parameters, rel=1e-3)
    assert model.source


def test_llama3_keeps_128_kib_a_token() -> None:
    assert load_model("llama3-8b").kv_bytes_per_token == 131072


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("gpt-oss-20b", 3.61e9),
        ("gpt-oss-120b", 5.13e9),
        ("deepseek-v3-671b", 36.6e9),
        ("qwen3-30b-a3b", 3.0e9),  # 3.3 billion with the embedding
        ("qwen3-235b-a22b", 21.6e9),  # 22 billion with it
    ],
)
def test_active_parameters_are_the_published_ones(name: str, active: float) -> None:
    model = load_model(name)
    assert model.layer_macs_per_token + model.head.weights == pytest.approx(active, rel=0.02)


def test_each_part_has_its_width() -> None:
    model = load_model("gpt-oss-20b")
    assert model.weight_bytes == pytest.approx(13.76e9, rel=1e-3)  # the published checkpoint
    assert model.in_one_width("bf16").weight_bytes == 2 * model.parameters
    assert load_model("deepseek-v3-671b").expert_bytes == 3 * 7168 * 2048


def test_every_second_layer_of_gpt_oss_sees_a_window() -> None:
    model = load_model("gpt-oss-20b")
    windowed = [model.count(range(layer, layer + 1)).windowed for layer in range(4)]
    assert windowed == [1, 0, 1, 0]
    assert model.count(range(3, 8)) == (0, 5, 3, 2)
    assert model.kv_bytes_per_token == 12 * 2 * 8 * 64 * 2


def test_a_latent_cache_keeps_576_elements_a_layer() -> None:
    model = load_model("deepseek-v3-671b")
    assert model.kv_bytes_per_token == 61 * 576 * 2
    assert model.count(range(61)) == (3, 58, 61, 0)
    assert model.prefill_heads.macs_per_pair == 128 * (192 + 128)
    assert model.decode_heads.macs_per_pair == 128 * (576 + 512)


def test_every_shipped_model_loads() -> None:
    assert len(model_names()) >= 4
    for name in model_names():
        assert load_model(name).name == name


def test_unknown_model_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="unknown model 'gpt-7'; known: .*llama3-8b"):
        load_model("gpt-7")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_heads": 5}, "query_heads must be a multiple of kv_heads"),
        ({"layers": 0}, "greater than 0"),
        ({"bytes_per_weight": 2}, "Extra inputs are not permitted"),
        ({"ffn_hidden": None}, "ffn_hidden is needed by the layers without experts"),
        ({"experts": {"count": 4, "active": 5, "width": 8}}, "active must not exceed count"),
        ({"experts": {"count": 4, "active": 1, "width": 8, "first_layer": 33}}, "first_layer"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Model.model_validate(load_model("llama3-8b").model_dump() | change)
