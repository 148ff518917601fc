"""A chip of tiles in two pools of pipelines of tensor-parallel groups."""

from dataclasses import dataclass

from tlm.chips import Chip
from tlm.compute.base import ceil_div
from tlm.errors import InputError, choose
from workloads.kernels.catalogue import KERNELS_OWN, Choices
from workloads.machine.groups import PD_PLACEMENTS, Parallel, pools_on
from workloads.machine.network import Network, chip_network
from workloads.models import Model
from workloads.serving.engine.kv_routes import kv_routes
from workloads.serving.engine.run import Pools
from workloads.serving.price.energy import carried_byte_j
from workloads.serving.price.group_price import GroupsPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPools:
    """How two pools lie on a chip.

    Attributes:
        prefill: How prompts are dealt out.
        decode: How decoding requests are.
        prefill_units: Tiles for prompts; None: the rest, or half.
        decode_units: Tiles that decode; None: the rest.
        placement: One of `workloads.machine.groups.PD_PLACEMENTS`.
        decode_chip: A chip whose cores decode; None: the chip's own.
    """

    prefill: Parallel
    decode: Parallel
    prefill_units: int | None = None
    decode_units: int | None = None
    placement: str = "pp-first"
    decode_chip: Chip | None = None


def make_group_pools(
    model: Model,
    chip: Chip,
    asked: GroupPools,
    *,
    network: Network | None = None,
    choices: Choices = KERNELS_OWN,
    priced: type[GroupsPrice] = GroupsPrice,
    kv_wanted_tokens: int = 0,
) -> Pools:
    """Cut a chip into pipelines for prompts and pipelines that decode.

    Keys and values go over the links of the chip, where they meet.

    Args:
        model: The model.
        chip: The chip.
        asked: How the pools lie.
        network: What stands in for the chip's network; None: nothing.
        choices: Variants of kernels.
        priced: What prices a pool.
        kv_wanted_tokens: Tokens that running requests have at most; a pipeline has its share.

    Raises:
        InputError: if there are not as many tiles, a pool cannot hold the model, or cores that
            decode cannot be on the chip.
    """
    choose("pd-placement", asked.placement, PD_PLACEMENTS)
    units = asked.prefill_units, asked.decode_units
    groups = pools_on(chip, asked.prefill, asked.decode, units, asked.placement)
    other = asked.decode_chip
    if other is not None:
        _check_cores(chip, other)
    prefill, decode = (
        priced(
            model,
            groups,
            parallel,
            pool=pool,
            chip=cores,
            network=network,
            choices=choices,
            kv_wanted_tokens=ceil_div(kv_wanted_tokens, len(groups.pipelines[pool])),
        )
        for pool, (parallel, cores) in enumerate(((asked.prefill, None), (asked.decode, other)))
    )
    prompts, decoding = groups.pipelines
    timing = (network or chip_network(chip)).timing
    routes = kv_routes(model, prompts, decoding, timing, chip.clock_hz)
    hops = [route.byte_hops for route in routes.routes.values()]
    carried = None
    if chip.energy is not None:
        carried = carried_byte_j(chip.energy, round(sum(hops) / len(hops)))
    counts = len(prompts), len(decoding)
    return Pools(
        prefill,
        decode,
        counts[0] * prefill.share,
        counts[1] * decode.share,
        model.kv_bytes_per_token,
        routes.link_bytes_per_s,
        carried_byte_j=carried,
        idle_w=prefill.idle_w,
        replicas=counts,
        routes=routes,
    )


def _check_cores(chip: Chip, other: Chip) -> None:
    """Hold that cores of one chip can be on another: all but they is alike."""
    for name in ("grid", "clock_hz", "noc"):
        mine, found = getattr(chip, name), getattr(other, name)
        if mine != found:
            raise InputError(
                f"--decode-chip: found '{other.name}' with {name} {found}; allowed on "
                f"'{chip.name}': cores on a {name} of {mine}"
            )
