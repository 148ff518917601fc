"""The schema of a dense decoder-only transformer and the loader of the shipped ones.

A layer is grouped-query attention and a gated feed-forward network (the Llama block): Q, K and V
projections, attention, output projection, gate and up projections, SiLU, down projection. Input
embedding and output head are separate matrices.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError, model_validator

from tlm.errors import InputError, choose

_FOLDER = Path(__file__).parent


class Linear(NamedTuple):
    """A linear layer: [tokens, ``k``] times [``k``, ``n``] weights."""

    name: str
    k: int
    n: int


class Model(BaseModel):
    """Shape of a model; ``source`` says where the figures were read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    layers: PositiveInt
    hidden: PositiveInt
    query_heads: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    ffn_hidden: PositiveInt
    vocabulary: PositiveInt
    bytes_per_weight: PositiveInt
    source: str

    @model_validator(mode="after")
    def _heads_share_evenly(self) -> Self:
        if self.query_heads % self.kv_heads:
            raise ValueError("query_heads must be a multiple of kv_heads")
        return self

    @property
    def layer_linears(self) -> tuple[Linear, ...]:
        """The linear layers of one transformer layer, in order of execution."""
        query = self.query_heads * self.head_dim
        kv = self.kv_heads * self.head_dim
        return (
            Linear("qkv", self.hidden, query + 2 * kv),
            Linear("attention output", query, self.hidden),
            Linear("gate and up", self.hidden, 2 * self.ffn_hidden),
            Linear("down", self.ffn_hidden, self.hidden),
        )

    @property
    def head(self) -> Linear:
        """The output head, which only tokens that give a next token pass."""
        return Linear("head", self.hidden, self.vocabulary)

    @property
    def layer_macs_per_token(self) -> int:
        """Multiply-accumulates of all layers' linear layers for one token."""
        return self.layers * sum(linear.k * linear.n for linear in self.layer_linears)

    @property
    def attention_macs_per_pair(self) -> int:
        """Multiply-accumulates of all layers for one (query token, visible token) pair."""
        return self.layers * 2 * self.query_heads * self.head_dim

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights: layers with two norms each, last norm, embedding and head."""
        norms = (2 * self.layers + 1) * self.hidden
        embeddings = 2 * self.vocabulary * self.hidden
        return (self.layer_macs_per_token + norms + embeddings) * self.bytes_per_weight

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that one token leaves in all layers, of the weights' width."""
        return self.layers * 2 * self.kv_heads * self.head_dim * self.bytes_per_weight


def model_names() -> tuple[str, ...]:
    """Names of the shipped models."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load_model(name: str) -> Model:
    """Load a shipped model by name.

    Raises:
        InputError: for an unknown name, or naming the file and the field that does not fit.
    """
    path = _FOLDER / f"{choose('model', name, model_names())}.toml"
    try:
        return Model.model_validate({"name": name, **tomllib.loads(path.read_text("utf-8"))})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "model"
        raise InputError(
            f"{path.name}: {field}: {first['msg']} (found {first['input']!r})"
        ) from error
