"""A config.json gives the shipped model; what the model has no word for is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tlm.errors import InputError
from workloads.models import Model, SlidingWindow, find_model, load_model
from workloads.models.find import shipped_as, text_of

_QWEN2_72B = {
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "max_position_embeddings": 131072,
    "max_window_layers": 80,
    "model_type": "qwen2",
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "rope_theta": 1000000.0,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 152064,
}
_QWEN3_30B = {
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "rope_scaling": None,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 151936,
}
_GPT_OSS_20B = {
    "attention_bias": True,
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "model_type": "gpt_oss",
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "quantization_config": {
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
        "quant_method": "mxfp4",
    },
    "rope_scaling": {"factor": 32.0, "rope_type": "yarn"},
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
_DEEPSEEK_V3 = {
    "ep_size": 1,
    "first_k_dense_replace": 3,
    "hidden_act": "silu",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "quantization_config": {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
    },
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
_LLAMA3_8B = {
    "attention_bias": False,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
_QWEN3_4B = {
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "max_window_layers": 36,
    "model_type": "qwen3",
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 151936,
}
_MISTRAL_7B = {
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "model_type": "mistral",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}
_PUBLIC: dict[str, dict[str, Any]] = {
    "llama3-8b": _LLAMA3_8B,
    "llama2-13b": _LLAMA3_8B
    | {"hidden_size": 5120, "intermediate_size": 13824, "num_attention_heads": 40}
    | {"num_hidden_layers": 40, "num_key_value_heads": None, "vocab_size": 32000},
    "codellama-34b": _LLAMA3_8B
    | {"hidden_size": 8192, "intermediate_size": 22016, "num_attention_heads": 64}
    | {"num_hidden_layers": 48, "vocab_size": 32000},
    "qwen2-72b": _QWEN2_72B,
    "qwen3-4b": _QWEN3_4B,
    "qwen3-30b-a3b": _QWEN3_30B,
    "gpt-oss-20b": _GPT_OSS_20B,
    "gpt-oss-120b": _GPT_OSS_20B
    | {"num_hidden_layers": 36, "num_local_experts": 128}
    | {"layer_types": ["sliding_attention", "full_attention"] * 18},
    "deepseek-v3-671b": _DEEPSEEK_V3,
}


def written(folder: Path, config: Any, name: str = "config.json") -> str:
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))
    return str(folder / name)


def read(folder: Path, config: dict[str, Any], **change: Any) -> Model:
    return find_model(written(folder, config | change))


@pytest.mark.parametrize("name", _PUBLIC)
def test_a_public_configuration_is_the_shipped_model(name: str, tmp_path: Path) -> None:
    model = read(tmp_path, _PUBLIC[name])
    kept = {field: getattr(model, field) for field in ("name", "title", "source")}
    assert model == load_model(name).model_copy(update=kept)
    assert shipped_as(model) == name


def test_it_is_called_as_its_folder_or_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    assert find_model(written(folder, _LLAMA3_8B)).name == "my-llama"
    assert find_model(written(folder, _LLAMA3_8B, "other.json")).name == "other"


@pytest.mark.parametrize("name", _PUBLIC)
def test_what_is_shown_of_it_is_the_same_model(name: str, tmp_path: Path) -> None:
    config = written(tmp_path, _PUBLIC[name])
    shown = written(tmp_path, text_of(config), "shown.toml")
    assert find_model(shown) == find_model(config)


def test_a_window_in_every_layer(tmp_path: Path) -> None:
    model = read(tmp_path, _MISTRAL_7B)
    assert model.sliding_window == SlidingWindow(tokens=4096)
    assert model.count(range(5, 32)) == (27, 0, 0, 27)
    assert model.kv_bytes_per_token == 131072  # up to the window
    assert read(tmp_path, _MISTRAL_7B, sliding_window=None).sliding_window is None


@pytest.mark.parametrize(
    ("change", "window"),
    [
        ({"max_window_layers": 36}, None),
        ({"max_window_layers": 0}, SlidingWindow(tokens=512)),
        ({"layer_types": ["full_attention"] * 36}, None),
        (
            {"layer_types": (["sliding_attention"] * 2 + ["full_attention"]) * 12},
            SlidingWindow(tokens=512, period=3),
        ),
    ],
)
def test_windows_of_qwen(
    change: dict[str, Any], window: SlidingWindow | None, tmp_path: Path
) -> None:
    used = {"use_sliding_window": True, "sliding_window": 512}
    assert read(tmp_path, _QWEN3_4B, **used, **change).sliding_window == window
    assert read(tmp_path, _QWEN3_4B, sliding_window=512, **change).sliding_window is None


def test_widths_of_weights(tmp_path: Path) -> None:
    half = read(tmp_path, _LLAMA3_8B, torch_dtype="float16")
    assert (half.weights, half.embeddings) == ("fp16", None)
    newer = {name: value for name, value in _LLAMA3_8B.items() if name != "torch_dtype"}
    assert read(tmp_path, newer, dtype="float16").weights == "fp16"
    assert read(tmp_path, newer).weights == "bf16"
    kept = ["lm_head", "model.layers.0.input_layernorm", "model.layers.0.mlp.gate"]
    narrow = {"quant_method": "fp8", "modules_to_not_convert": kept}
    eight = read(tmp_path, _QWEN3_30B, quantization_config=narrow)
    assert (eight.weights, eight.embeddings, eight.expert_width_bytes) == ("fp8", "bf16", 1.0)
    wide = read(tmp_path, _GPT_OSS_20B, quantization_config=None)
    assert wide.expert_width_bytes == 2.0


def test_the_first_layers_may_be_dense(tmp_path: Path) -> None:
    model = read(tmp_path, _QWEN3_30B, mlp_only_layers=[1, 0])
    assert (model.dense_layers, model.ffn_hidden) == (2, 6144)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "llama3-8b",
            {"model_type": "mamba"},
            "model_type: found architecture 'mamba'; known: llama, mistral, qwen2, qwen3, "
            "qwen3_moe, gpt_oss, deepseek_v3",
        ),
        ("llama3-8b", {"model_type": None}, "model_type: found nothing; known: llama, mistral,"),
        ("llama3-8b", {"hidden_size": -1}, "hidden_size: Input should be greater than 0 (found"),
        ("llama3-8b", {"hidden_size": "4096"}, "hidden_size: Input should be a valid integer ("),
        (
            "llama3-8b",
            {"hidden_act": "relu2"},
            "hidden_act: Input should be 'silu' or 'swish' (found 'relu2')",
        ),
        (
            "llama3-8b",
            {"torch_dtype": "float32"},
            "torch_dtype: Input should be 'bfloat16' or 'float16' (found 'float32')",
        ),
        (
            "llama3-8b",
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "quantization_config.quant_method: Input should be 'fp8' or 'mxfp4' (found 'gptq')",
        ),
        (
            "llama3-8b",
            {"quantization_config": {"quant_method": "mxfp4"}},
            "quantization_config.quant_method: found mxfp4; allowed: fp8; mxfp4 is of gpt_oss",
        ),
        (
            "llama3-8b",
            {
                "quantization_config": {
                    "quant_method": "fp8",
                    "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"],
                }
            },
            "quantization_config: modules_to_not_convert: found 'model.layers.0.self_attn.q_proj'; "
            "allowed: embeddings, the output head, routers and norms, as all linear",
        ),
        (
            "llama3-8b",
            {"num_attention_heads": 33},
            "head_dim: found nothing, with hidden_size 4096 and num_attention_heads 33; allowed: ",
        ),
        (
            "llama3-8b",
            {"num_key_value_heads": 5},
            "as the model that it becomes: query_heads must be a multiple of kv_heads",
        ),
        (
            "qwen3-4b",
            {"use_sliding_window": True, "sliding_window": 512, "max_window_layers": 20},
            "max_window_layers: found 20 with windows in use; allowed: 0, a window in all layers, "
            "or 36, in none",
        ),
        (
            "qwen3-30b-a3b",
            {"decoder_sparse_step": 2},
            "decoder_sparse_step: found 2; allowed: 1, experts in every layer but the first of ",
        ),
        (
            "qwen3-30b-a3b",
            {"mlp_only_layers": [3]},
            "mlp_only_layers: found [3]; allowed: the first layers, from 0",
        ),
        (
            "gpt-oss-20b",
            {"layer_types": ["full_attention", "sliding_attention"] * 12},
            "layer_types: found sliding_attention in layer 1; allowed: sliding_attention in all "
            "layers but the last of each 1, as the first layers have it",
        ),
        (
            "gpt-oss-20b",
            {"layer_types": ["chunked_attention", "full_attention"] * 12},
            "layer_types: found chunked_attention; allowed: full_attention, sliding_attention",
        ),
        ("gpt-oss-20b", {"layer_types": []}, "layer_types: found 0 of them; allowed: 24, one a "),
        ("deepseek-v3-671b", {"q_lora_rank": None}, "q_lora_rank: Input should be a valid integer"),
        ("deepseek-v3-671b", {"moe_layer_freq": 2}, "moe_layer_freq: Input should be 1 (found 2)"),
    ],
)
def test_what_a_model_cannot_say_is_refused(
    name: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, _PUBLIC[name], **change)
    assert str(caught.value).startswith(f"{tmp_path}/config.json: {message}")


def test_a_field_that_is_missing_is_named(tmp_path: Path) -> None:
    for field in ("hidden_size", "num_local_experts", "sliding_window"):
        config = {name: value for name, value in _GPT_OSS_20B.items() if name != field}
        with pytest.raises(InputError, match=f"config.json: {field}: found nothing; needed"):
            find_model(written(tmp_path, config))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON: "),
        ("[]", "found no JSON object; allowed: a config.json of Hugging Face's"),
        ("[" * 100_000, "not JSON: "),
    ],
)
def test_what_is_no_configuration_is_named(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_model(written(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path}/config.json: {fault}")


def test_a_model_of_a_toml_file(tmp_path: Path) -> None:
    path = written(tmp_path, text_of("gpt-oss-20b"), "mine.toml")
    assert find_model(path) == load_model("gpt-oss-20b").model_copy(update={"name": "mine"})
    written(tmp_path, text_of("gpt-oss-20b").replace("active = 4", "active = 0"), "mine.toml")
    with pytest.raises(InputError) as caught:
        find_model(path)
    fault = "experts.active: Input should be greater than 0 (found 0)"
    assert str(caught.value) == f"{path}: {fault}"
