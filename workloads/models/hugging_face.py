"""A model's shape from its ``config.json`` in Hugging Face's format.

Each architecture is a table of the fields that decide what a model costs, named as in the
configuration classes of the library transformers. All others are passed over: the scaling of rotary
embeddings, dropout, tokens, biases of projections (under 0.1 % of the weights) and modules for
multi-token prediction. What costs something that `Model` has no word for is refused.
"""

import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, model_validator

from tlm.errors import InputError
from tlm.tables import Count, Natural, Size, Table, json_value
from workloads.models.model import Dtype, Experts, LatentAttention, Model, SlidingWindow

_DTYPES: dict[str, Dtype] = {"bfloat16": "bf16", "float16": "fp16"}
_FULL, _WINDOWED = "full_attention", "sliding_attention"
# Parts that stay as they are where linear layers become fp8; the router among them is small.
_BESIDE_LINEAR = re.compile(r"(.*\.)?(lm_head|embed_tokens|gate|router|\w*norm\w*)")
_NAME = "config.json"


class _Widths(NamedTuple):
    """Widths of weights; None: that of the model."""

    model: Dtype
    embeddings: Dtype | None = None
    experts: Dtype | None = None


class _Config(Table):
    """What is read of a configuration; the rest has no cost."""

    model_config = ConfigDict(extra="ignore")


class _Quantization(_Config):
    """How weights are narrowed: ``fp8`` all linear layers, ``mxfp4`` the experts of gpt-oss."""

    quant_method: Literal["fp8", "mxfp4"]
    modules_to_not_convert: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _leaves_out_no_linear_layers(self) -> Self:
        kept = self.modules_to_not_convert or ()
        if self.quant_method == "fp8":
            for name in kept:
                if not _BESIDE_LINEAR.fullmatch(name):
                    raise ValueError(
                        f"modules_to_not_convert: found '{name}'; allowed: embeddings, the output "
                        "head, routers and norms, as all linear layers have one width"
                    )
        return self


class _Decoder(_Config):
    """What all architectures have in common."""

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    vocab_size: Count
    hidden_act: Literal["silu", "swish"] = "silu"
    tie_word_embeddings: bool = False
    dtype: Literal["bfloat16", "float16"] | None = Field(
        None, validation_alias=AliasChoices("torch_dtype", "dtype")
    )
    quantization_config: _Quantization | None = None

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Fields of `Model` beside those that `_common` gives."""

    def model(self, name: str) -> Model:
        """The model.

        Raises:
            ValueError: for what `Model` has no word for.
        """
        widths = self.widths()
        figures: dict[str, Any] = {
            "name": name,
            "title": name,
            "layers": self.num_hidden_layers,
            "hidden": self.hidden_size,
            "query_heads": self.num_attention_heads,
            "ffn_hidden": self.intermediate_size,
            "vocabulary": self.vocab_size,
            "tied_embeddings": self.tie_word_embeddings,
            "weights": widths.model,
            "embeddings": widths.embeddings,
            "source": f"{_NAME} of {name}",
        } | self.figures()
        return Model(**figures)

    def widths(self) -> _Widths:
        """Widths of the weights, bf16 where nothing is said."""
        own = _DTYPES[self.dtype or "bfloat16"]
        method = self.quantization_config and self.quantization_config.quant_method
        if method == "mxfp4":
            raise ValueError(
                "quantization_config.quant_method: found mxfp4; allowed: fp8; mxfp4 is of gpt_oss"
            )
        return _Widths("fp8", own) if method == "fp8" else _Widths(own)


class _Grouped(_Decoder):
    """Grouped-query attention."""

    num_key_value_heads: Count | None
    head_dim: Count | None = None

    def figures(self) -> dict[str, Any]:
        """See `_Decoder`."""
        return {
            "kv_heads": self.num_key_value_heads or self.num_attention_heads,
            "head_dim": self._head_dim(),
            "sliding_window": self.window(),
        }

    def window(self) -> SlidingWindow | None:
        """What attention sees; None: all tokens in all layers."""
        return None

    def _head_dim(self) -> int:
        if self.head_dim is not None:
            return self.head_dim
        each, rest = divmod(self.hidden_size, self.num_attention_heads)
        if rest:
            raise ValueError(
                f"head_dim: found nothing, with hidden_size {self.hidden_size} and "
                f"num_attention_heads {self.num_attention_heads}; allowed: a multiple, or head_dim"
            )
        return each


class Llama(_Grouped):
    """Llama 2 and 3, Code Llama: every head has keys and values where nothing else is said."""

    num_key_value_heads: Count | None = None


class Mistral(_Grouped):
    """Mistral 7B and the like: a window in all layers, or in none (null)."""

    sliding_window: Size | None

    def window(self) -> SlidingWindow | None:
        """See `_Grouped`."""
        return None if self.sliding_window is None else SlidingWindow(tokens=self.sliding_window)


class Qwen2(_Grouped):
    """Qwen2 and, with its own size of heads, Qwen3: windows from layer `max_window_layers` on."""

    use_sliding_window: bool = False
    sliding_window: Size | None = None
    max_window_layers: Natural | None = None
    layer_types: tuple[str, ...] | None = None

    def window(self) -> SlidingWindow | None:
        """See `_Grouped`."""
        if not self.use_sliding_window or self.sliding_window is None:
            return None
        if self.layer_types is not None:
            return _window(self.sliding_window, self.layer_types, self.num_hidden_layers)
        first, layers = self.max_window_layers, self.num_hidden_layers
        if first is None or 0 < first < layers:
            raise ValueError(
                f"max_window_layers: found {first} with windows in use; allowed: 0, a window in "
                f"all layers, or {layers}, in none"
            )
        return None if first else SlidingWindow(tokens=self.sliding_window)


class Qwen3(Qwen2):
    """Qwen3: heads of a size of their own."""

    head_dim: Count


class Qwen3Moe(_Grouped):
    """Qwen3 with experts in all layers, or in all but the first."""

    moe_intermediate_size: Count
    num_experts: Count = Field(validation_alias=AliasChoices("num_experts", "num_local_experts"))
    num_experts_per_tok: Count
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] | None = None
    use_sliding_window: bool = False
    sliding_window: Size | None = None

    def figures(self) -> dict[str, Any]:
        """See `_Decoder`."""
        if self.decoder_sparse_step != 1:
            raise ValueError(
                f"decoder_sparse_step: found {self.decoder_sparse_step}; allowed: 1, experts in "
                "every layer but the first of mlp_only_layers"
            )
        dense = sorted(self.mlp_only_layers or ())
        if dense != list(range(len(dense))):
            raise ValueError(
                f"mlp_only_layers: found {dense}; allowed: the first layers, from 0 on"
            )
        experts = Experts(
            count=self.num_experts,
            active=self.num_experts_per_tok,
            width=self.moe_intermediate_size,
            first_layer=len(dense),
            weights=self.widths().experts,
        )
        ffn = self.intermediate_size if dense else None
        return super().figures() | {"experts": experts, "ffn_hidden": ffn}

    def window(self) -> SlidingWindow | None:
        """See `_Grouped`: all layers, or none."""
        if not self.use_sliding_window or self.sliding_window is None:
            return None
        return SlidingWindow(tokens=self.sliding_window)


class GptOss(_Grouped):
    """gpt-oss: experts in all layers, every second layer with a window where nothing is said."""

    head_dim: Count
    num_local_experts: Count = Field(
        validation_alias=AliasChoices("num_local_experts", "num_experts")
    )
    num_experts_per_tok: Count = Field(
        validation_alias=AliasChoices("num_experts_per_tok", "experts_per_token")
    )
    sliding_window: Size | None
    layer_types: tuple[str, ...] | None = None

    def figures(self) -> dict[str, Any]:
        """See `_Decoder`."""
        experts = Experts(
            count=self.num_local_experts,
            active=self.num_experts_per_tok,
            width=self.intermediate_size,
            weights=self.widths().experts,
        )
        return super().figures() | {"experts": experts, "ffn_hidden": None}

    def widths(self) -> _Widths:
        """See `_Decoder`: of mxfp4 are the experts alone."""
        quantized = self.quantization_config
        if quantized is None or quantized.quant_method != "mxfp4":
            return super().widths()
        return _Widths(_DTYPES[self.dtype or "bfloat16"], experts="fp4")

    def window(self) -> SlidingWindow | None:
        """See `_Grouped`."""
        if self.sliding_window is None:
            return None
        if self.layer_types is None:
            return SlidingWindow(tokens=self.sliding_window, period=2)
        return _window(self.sliding_window, self.layer_types, self.num_hidden_layers)


class DeepSeekV3(_Decoder):
    """DeepSeek-V3 and R1: latent attention, experts behind some dense layers."""

    moe_intermediate_size: Count
    n_routed_experts: Count = Field(
        validation_alias=AliasChoices("n_routed_experts", "num_local_experts")
    )
    num_experts_per_tok: Count
    n_shared_experts: Natural | None = None
    num_nextn_predict_layers: Natural = 0
    first_k_dense_replace: Natural
    moe_layer_freq: Literal[1] = 1
    q_lora_rank: Count
    kv_lora_rank: Count
    qk_rope_head_dim: Count
    qk_nope_head_dim: Count
    v_head_dim: Count

    def figures(self) -> dict[str, Any]:
        """See `_Decoder`."""
        return {
            "kv_heads": self.num_attention_heads,
            "head_dim": self.v_head_dim,
            "ffn_hidden": self.intermediate_size if self.first_k_dense_replace else None,
            "experts": Experts(
                count=self.n_routed_experts,
                active=self.num_experts_per_tok,
                width=self.moe_intermediate_size,
                shared=self.n_shared_experts or 0,
                first_layer=self.first_k_dense_replace,
                weights=self.widths().experts,
            ),
            "draft_layers": self.num_nextn_predict_layers,
            "latent_attention": LatentAttention(
                query_rank=self.q_lora_rank,
                kv_rank=self.kv_lora_rank,
                rope_dim=self.qk_rope_head_dim,
                nope_dim=self.qk_nope_head_dim,
                value_dim=self.v_head_dim,
            ),
        }


#: Architectures by their ``model_type``.
ARCHITECTURES: dict[str, type[_Decoder]] = {
    "llama": Llama,
    "mistral": Mistral,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "qwen3_moe": Qwen3Moe,
    "gpt_oss": GptOss,
    "deepseek_v3": DeepSeekV3,
}


def read_config(path: Path, told: str) -> Model:
    """The model of a ``config.json``, called as the folder that holds it, else as the file.

    Raises:
        InputError: naming the file, the field, what was found and what is allowed.
    """
    fields = json_value(path, told)
    if not isinstance(fields, dict):
        raise InputError(f"{told}: found no JSON object; allowed: a {_NAME} of Hugging Face's")
    known, kind = ", ".join(ARCHITECTURES), fields.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        found = "nothing" if kind is None else f"architecture {kind!r}"
        raise InputError(f"{told}: model_type: found {found}; known: {known}")
    config = ARCHITECTURES[kind].made(fields, told)
    folder = path.resolve().parent.name if path.name == _NAME else ""
    try:
        return config.model(folder or path.stem)
    except ValidationError as error:
        fault = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"{told}: as the model that it becomes: {fault}") from error
    except ValueError as error:
        raise InputError(f"{told}: {error}") from error


def _window(tokens: int, kinds: tuple[str, ...], layers: int) -> SlidingWindow | None:
    """The window of layers whose kinds are listed.

    Raises:
        ValueError: if it is not in all layers but the last of each so many.
    """
    if len(kinds) != layers:
        raise ValueError(f"layer_types: found {len(kinds)} of them; allowed: {layers}, one a layer")
    if others := sorted(set(kinds) - {_FULL, _WINDOWED}):
        raise ValueError(f"layer_types: found {', '.join(others)}; allowed: {_FULL}, {_WINDOWED}")
    if _WINDOWED not in kinds:
        return None
    if _FULL not in kinds:
        return SlidingWindow(tokens=tokens)
    window = SlidingWindow(tokens=tokens, period=kinds.index(_FULL) + 1)
    for layer, kind in enumerate(kinds):
        if (kind == _WINDOWED) != (window.count(range(layer, layer + 1)) == 1):
            raise ValueError(
                f"layer_types: found {kind} in layer {layer}; allowed: {_WINDOWED} in all layers "
                f"but the last of each {window.period}, as the first layers have it"
            )
    return window
