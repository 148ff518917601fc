"""The schema of a decoder-only transformer and the loader of the shipped ones.

A layer is attention and a gated feed-forward network (the Llama block): projections, attention,
output projection, gate and up projections, SiLU, down projection. Attention is grouped-query, or
latent as in DeepSeek; it sees all tokens or, in some layers, a sliding window. The feed-forward
network is dense or a mixture of experts.
"""

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from tlm.errors import choose
from tlm.tables import Count, Natural, Size, Table, toml_fields

_FOLDER = Path(__file__).parent

Dtype = Literal["bf16", "fp16", "fp8", "fp4"]
# fp4 is MXFP4: 32 elements of 4 bits share a scale of 8 (OCP Microscaling Formats, version 1.0).
DTYPE_BYTES: dict[Dtype, float] = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.53125}


class Linear(NamedTuple):
    """A linear layer: [tokens, ``k``] times [``k``, ``n``] weights."""

    name: str
    k: int
    n: int

    @property
    def weights(self) -> int:
        """Number of weights."""
        return self.k * self.n


class Heads(NamedTuple):
    """Shape of attention as its kernel sees it.

    Attributes:
        kv_heads: Heads of keys and values.
        queries_per_kv: Query heads that share one of them.
        qk_dim: Elements of a query and of a key.
        value_dim: Elements of a value and of an output.
        kept_per_kv: Elements that are read of the cache for a token and head of keys and values.
    """

    kv_heads: int
    queries_per_kv: int
    qk_dim: int
    value_dim: int
    kept_per_kv: int

    @property
    def macs_per_pair(self) -> int:
        """Multiply-accumulates for one (query token, visible token) pair, all heads."""
        return self.kv_heads * self.queries_per_kv * (self.qk_dim + self.value_dim)


class LayerCounts(NamedTuple):
    """Layers of a stretch by their feed-forward network and by what their attention sees."""

    dense: int
    experts: int
    full: int
    windowed: int


class Experts(Table):
    """Mixture of experts of the layers from ``first_layer`` on; those before are dense.

    Each token goes to ``active`` of ``count`` experts of ``width`` hidden elements, and to
    ``shared`` more that every token passes. ``weights`` is their width if it is not the model's.
    """

    count: Count
    active: Count
    width: Count
    shared: Natural = 0
    first_layer: Natural = 0
    weights: Dtype | None = None

    @model_validator(mode="after")
    def _no_more_active_than_there_are(self) -> Self:
        if self.active > self.count:
            raise ValueError("active must not exceed count")
        return self


class SlidingWindow(Table):
    """All layers but the last of each ``period`` see the last ``tokens`` tokens only.

    Without a period all layers do.
    """

    tokens: Size
    period: Count | None = None

    def count(self, layers: range) -> int:
        """Layers with the window among ``layers``, which are consecutive."""
        if self.period is None:
            return len(layers)
        full = layers.stop // self.period - layers.start // self.period
        return len(layers) - full


class LatentAttention(Table):
    """Multi-head latent attention (DeepSeek-V2 paper, section 2.1): a compressed cache."""

    query_rank: Count
    kv_rank: Count
    rope_dim: Count
    nope_dim: Count
    value_dim: Count


class Model(Table):
    """Shape of a model; ``source`` says where the figures were read.

    Keys, values and activations are of 2 bytes, but where a chip computes them in the width of the
    weights. ``draft_layers`` are those of a module that drafts the next token but one; they are not
    among ``layers``.
    """

    name: str = Field(min_length=1)
    title: str
    layers: Count
    hidden: Count
    query_heads: Count
    kv_heads: Count
    head_dim: Count
    ffn_hidden: Count | None = None
    vocabulary: Count
    tied_embeddings: bool = False
    weights: Dtype
    embeddings: Dtype | None = None
    experts: Experts | None = None
    sliding_window: SlidingWindow | None = None
    latent_attention: LatentAttention | None = None
    draft_layers: Natural = 0
    source: str

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.query_heads % self.kv_heads:
            raise ValueError("query_heads must be a multiple of kv_heads")
        if self.dense_layers > self.layers:
            raise ValueError("experts.first_layer must not exceed layers")
        if self.dense_layers and self.ffn_hidden is None:
            raise ValueError("ffn_hidden is needed by the layers without experts")
        return self

    @property
    def dense_layers(self) -> int:
        """Layers without experts; they are the first."""
        return self.layers if self.experts is None else self.experts.first_layer

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers

    def count(self, layers: range) -> LayerCounts:
        """Layers of each kind among ``layers``, which are consecutive."""
        dense = max(0, min(layers.stop, self.dense_layers) - layers.start)
        windowed = 0 if self.sliding_window is None else self.sliding_window.count(layers)
        return LayerCounts(dense, len(layers) - dense, len(layers) - windowed, windowed)

    @property
    def full_layers(self) -> int:
        """Layers that see all tokens."""
        return self.count(range(self.layers)).full

    @property
    def attention_linears(self) -> tuple[Linear, ...]:
        """The linear layers around attention, in order of execution."""
        latent, hidden, heads = self.latent_attention, self.hidden, self.query_heads
        if latent is not None:
            query = latent.nope_dim + latent.rope_dim
            return (
                Linear("query down", hidden, latent.query_rank),
                Linear("query up", latent.query_rank, heads * query),
                Linear("cache down", hidden, latent.kv_rank + latent.rope_dim),
                Linear("cache up", latent.kv_rank, heads * (latent.nope_dim + latent.value_dim)),
                Linear("attention output", heads * latent.value_dim, hidden),
            )
        query = heads * self.head_dim
        kv = self.kv_heads * self.head_dim
        return (
            Linear("qkv", hidden, query + 2 * kv),
            Linear("attention output", query, hidden),
        )

    @property
    def dense_linears(self) -> tuple[Linear, ...]:
        """The linear layers of a dense feed-forward network."""
        return self._gated(self.ffn_hidden or 0)

    @property
    def expert_linears(self) -> tuple[Linear, ...]:
        """The linear layers of one expert."""
        return self._gated(0 if self.experts is None else self.experts.width)

    @property
    def shared_linears(self) -> tuple[Linear, ...]:
        """What every token passes beside its experts: the router, and the shared experts."""
        if self.experts is None:
            return ()
        router = Linear("router", self.hidden, self.experts.count)
        shared = self.experts.shared * self.experts.width
        return (router, *(self._gated(shared) if shared else ()))

    def _gated(self, width: int) -> tuple[Linear, ...]:
        return (
            Linear("gate and up", self.hidden, 2 * width),
            Linear("down", width, self.hidden),
        )

    @property
    def head(self) -> Linear:
        """The output head, which only tokens that give a next token pass."""
        return Linear("head", self.hidden, self.vocabulary)

    @property
    def prefill_heads(self) -> Heads:
        """Attention of prompts; keys and values of a latent cache are unfolded."""
        latent = self.latent_attention
        if latent is None:
            return self._grouped_heads()
        query = latent.nope_dim + latent.rope_dim
        return Heads(self.query_heads, 1, query, latent.value_dim, query + latent.value_dim)

    @property
    def decode_heads(self) -> Heads:
        """Attention of decoding; on a latent cache all heads work on the compressed tokens."""
        latent = self.latent_attention
        if latent is None:
            return self._grouped_heads()
        kept = latent.kv_rank + latent.rope_dim
        return Heads(1, self.query_heads, kept, latent.kv_rank, kept)

    def _grouped_heads(self) -> Heads:
        dim = self.head_dim
        return Heads(self.kv_heads, self.query_heads // self.kv_heads, dim, dim, 2 * dim)

    @property
    def weight_width_bytes(self) -> float:
        """Bytes of a weight of the linear layers."""
        return DTYPE_BYTES[self.weights]

    @property
    def expert_width_bytes(self) -> float:
        """Bytes of a weight of the experts."""
        own = None if self.experts is None else self.experts.weights
        return DTYPE_BYTES[own or self.weights]

    @property
    def head_width_bytes(self) -> float:
        """Bytes of a weight of the embedding and the output head."""
        return DTYPE_BYTES[self.embeddings or self.weights]

    @property
    def expert_bytes(self) -> float:
        """Bytes of one expert of one layer."""
        return _weights(self.expert_linears) * self.expert_width_bytes

    @property
    def layer_macs_per_token(self) -> int:
        """Multiply-accumulates of all layers' linear layers for one token."""
        experts = self.experts
        active = 0 if experts is None else experts.active * _weights(self.expert_linears)
        return (
            self.layers * _weights(self.attention_linears)
            + self.dense_layers * _weights(self.dense_linears)
            + self.expert_layers * (_weights(self.shared_linears) + active)
        )

    @property
    def attention_macs_per_pair(self) -> int:
        """Multiply-accumulates of all layers for one (query token, visible token) pair."""
        return self.layers * self.prefill_heads.macs_per_pair

    @property
    def parameters(self) -> int:
        """Number of weights: linear layers, two norms a layer, last norm, embedding and head."""
        return self._plain_weights + self._expert_weights + self._embedding_weights

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, each part in its width."""
        return round(
            self._plain_weights * self.weight_width_bytes
            + self._expert_weights * self.expert_width_bytes
            + self._embedding_weights * self.head_width_bytes
        )

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes that a token leaves in the caches of the layers that see all tokens.

        Windows are of constant size, a few megabytes a request, and are not counted. Where all
        layers have one, all count: exact for requests up to the window, too much for longer ones.
        """
        return (self.full_layers or self.layers) * self.kept_elements * 2

    @property
    def kept_elements(self) -> int:
        """Elements of the keys and values of a token in a layer."""
        latent = self.latent_attention
        if latent is not None:
            return latent.kv_rank + latent.rope_dim
        return 2 * self.kv_heads * self.head_dim

    def in_one_width(self, dtype: Dtype) -> "Model":
        """The same model with all its weights of one width."""
        experts = self.experts and self.experts.model_copy(update={"weights": None})
        change = {"weights": dtype, "embeddings": None, "experts": experts}
        return self.model_copy(update=change)

    @property
    def _plain_weights(self) -> int:
        return (
            self.layers * _weights(self.attention_linears)
            + self.dense_layers * _weights(self.dense_linears)
            + self.expert_layers * _weights(self.shared_linears)
            + (2 * self.layers + 1) * self.hidden
        )

    @property
    def _expert_weights(self) -> int:
        count = 0 if self.experts is None else self.experts.count
        return self.expert_layers * count * _weights(self.expert_linears)

    @property
    def _embedding_weights(self) -> int:
        return (1 if self.tied_embeddings else 2) * self.head.weights


def _weights(linears: tuple[Linear, ...]) -> int:
    return sum(linear.weights for linear in linears)


def model_names() -> tuple[str, ...]:
    """Names of the shipped models."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load_model(name: str) -> Model:
    """Load a shipped model by name.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    file = f"{choose('model', name, model_names())}.toml"
    return Model.made({"name": name} | toml_fields(_FOLDER / file, file), file)


def model_text(name: str) -> str:
    """The shipped file of a model by name.

    Raises:
        InputError: for an unknown name.
    """
    file = f"{choose('model', name, model_names())}.toml"
    return (_FOLDER / file).read_text(encoding="utf-8")
