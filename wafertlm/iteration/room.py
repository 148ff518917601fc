"""Whether the keys and values of an iteration have room."""

from fractions import Fraction

from tlm.errors import InputError
from wafertlm.kernel.setup import Ground
from workloads.machine.kv_levels import KvLevels
from workloads.models import Model
from workloads.serving.price.cost import Batch
from workloads.serving.price.tile_price import left_by_weights


def tokens_of(batch: Batch) -> int:
    """Tokens whose keys and values are there when an iteration ends."""
    return batch.decode_context_tokens + sum(map(sum, batch.prefills)) + batch.decode_tokens


def check_room(batch: Batch, capacity_tokens: int, holder: str) -> None:
    """Hold that the keys and values of an iteration fit.

    Args:
        batch: What is computed.
        capacity_tokens: Tokens that have room.
        holder: Who has it.

    Raises:
        InputError: if they do not.
    """
    tokens = tokens_of(batch)
    if tokens > capacity_tokens:
        raise InputError(
            f"--decode, --prefill: found {tokens} tokens; allowed: the {capacity_tokens} whose "
            f"keys and values {holder} holds beside the weights"
        )


def check_grid_room(ground: Ground, model: Model, batch: Batch) -> None:
    """The same on a grid of tiles with off-chip memory of which the chip says how much there is.

    Raises:
        InputError: if they do not, or the weights do not.
    """
    chip, place = ground.chip, ground.place
    if chip.memory is None or place.offchip is None:
        return
    tiles = Fraction(place.rows * place.cols, chip.grid.rows * chip.grid.cols)
    # Memory that all share is there for a part of the tiles, too.
    left = left_by_weights(model, chip, tiles if chip.memory.per_tile else Fraction(1))
    tokens = KvLevels(0, left).memory_tokens(model.kv_bytes_per_token)
    check_room(batch, tokens, f"'{chip.name}'")
