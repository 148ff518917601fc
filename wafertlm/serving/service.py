"""What options of serving ask for, ready to run under any load."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from tlm.calibrated import measured_rtl_hash
from tlm.chips import Chip, find_chip
from tlm.chips.gpu import GpuBox
from tlm.chips.profile import CalibratedNoc
from tlm.errors import InputError
from tlm.python_files import PythonName
from wafertlm.asked.mapped import ON_DIES, ON_GROUPS, ON_POOLS
from wafertlm.asked.serve import MAPPED, ServeOptions
from wafertlm.die_options import die_mapping
from wafertlm.group_options import group_parallel
from wafertlm.options import contents, dashed, recorded
from wafertlm.serving.effect import OwnEffect
from wafertlm.serving.load import Load
from wafertlm.serving.measuring import hold_cost, level_runs
from workloads.kernels.catalogue import KERNELS
from workloads.machine.groups import PD_PLACEMENTS, Parallel
from workloads.machine.network import Network
from workloads.machine.place import Place
from workloads.models import Dtype, Model, find_model
from workloads.serving.engine.group_pools import GroupPools, make_group_pools
from workloads.serving.engine.pools import make_pools
from workloads.serving.engine.run import Limits, Pools, Watch, run, run_disaggregated
from workloads.serving.engine.speculation import Speculation
from workloads.serving.price.cost import Batch, ServingModel
from workloads.serving.price.group_price import GroupsPrice
from workloads.serving.price.level_runs import RunLevel
from workloads.serving.price.mapping import Mapped
from workloads.serving.price.models import (
    OnTiles,
    replicated_model,
    serving_chip,
    serving_model,
)
from workloads.serving.price.tile_price import End, TilePrice
from workloads.serving.result.seeds import mean_of
from workloads.serving.schedulers import Scheduler, SchedulerOptions, is_custom, make_scheduler

if TYPE_CHECKING:  # reading specifications takes a third of a second to import
    from wafertlm.custom import CustomRouters

#: What iterations of a run were made of, and how often, by pool.
Made = Mapping[str, Counter[Hashable]]
#: Work of which every kernel that a service may run has some. Of a shorter prompt a wafer may make
#: no reshuffle, as it takes fewer cycles on the grid of decoding.
_USUAL = Batch(((4096, 1024),), 16, 16 * 1024, 17)
#: Options that name a scheduler.
_SCHEDULERS = ("scheduler", "prefill_scheduler")
_PREFILL_POOL_SCHEDULER = "chunked"
_PREFILL_POOL_TOKENS = 2048


def mean_of_runs(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over seeds: overloaded if one run is, as they hang on how many requests came to it."""
    merged = mean_of(results)
    is_overloaded = any(each["overloaded"] for each in results)
    return merged | ({"overloaded": True} if is_overloaded else {})


class Service:
    """What options ask for, ready to run under any load.

    Raises:
        InputError: for options that do not fit together, unknown names, a trace that cannot be
            used, and weights that do not fit.
    """

    def __init__(self, options: ServeOptions) -> None:
        options.check()
        self.options = options
        self.model = find_model(options.model)
        self.chip = serving_chip(find_chip(options.chip, options.set))
        self._scheduler()  # refused before anything is loaded
        self.custom = None if options.rtl is None else self._custom_routers(options.rtl)
        network = None if self.custom is None else self._network(self.custom)
        self._check_mapping()
        self.load = Load(options)
        self._speculation = (
            None
            if options.draft_tokens is None
            else Speculation(options.draft_tokens, options.acceptance, options.seed)
        )
        self._served: ServingModel | None = None
        self._pools: Pools | None = None
        self._decode_chip: Chip | None = None
        self.own_effect: OwnEffect | None = None
        self._price_on(network)
        self._check_custom()

    def _price_on(self, network: Network | None) -> None:
        """Make the prices, of custom routers on their network."""
        options = self.options
        dies = die_mapping(options, self.chip)
        groups = 1 if dies is not None else options.expert_parallel or 1
        keeps = isinstance(self.chip, Chip) and self.chip.residency is not None
        wanted = self.load.most_tokens if keeps else 0
        parallel = self._parallel()
        if parallel is not None:
            assert isinstance(self.chip, Chip)  # as checked
            self._check_groups()
            if options.is_disaggregated:
                self._pools = self._group_pools(self.chip, network, wanted)
            else:
                self._served = replicated_model(
                    self.shape,
                    self.chip,
                    parallel,
                    network=network,
                    choices=options.choices,
                    kv_wanted_tokens=wanted,
                )
        elif options.is_disaggregated:
            self._pools = make_pools(
                self.shape,
                self.chip,
                prefill_units=options.prefill_units,
                decode_units=options.decode_units,
                link_bytes_per_s=options.link_bytes_per_s,
                link_latency_s=options.link_latency_s,
                expert_parallel=groups,
                kv_sram_tokens=options.kv_sram_tokens,
                kv_wanted_tokens=wanted,
                network=network,
                choices=options.choices,
                dies=dies,
            )
        else:
            self._served = serving_model(
                self.shape,
                self.chip,
                expert_parallel=groups,
                kv_sram_tokens=options.kv_sram_tokens,
                kv_wanted_tokens=wanted,
                network=network,
                choices=options.choices,
                dies=dies,
            )
        if options.level != "perf":
            self._price_at(cast(RunLevel, options.level))

    @property
    def pools(self) -> list[ServingModel]:
        """Prices of who computes prompts and of who decodes, or of the one that does both."""
        if self._pools is not None:
            return [self._pools.prefill, self._pools.decode]
        assert self._served is not None  # one of the two is there
        return [self._served]

    @property
    def groups(self) -> dict[str, Any]:
        """How groups of tiles lie, by pool where there are two; nothing of others."""
        return self._by_pool(
            "groups", [price.record() for price in self.tiles if isinstance(price, GroupsPrice)]
        )

    @property
    def residency(self) -> dict[str, Any]:
        """What tiles keep, by pool where there are two; nothing of others."""
        records = []
        for price in self.tiles:
            if isinstance(price, TilePrice) and price.residency is not None:
                records.append(price.residency.record())
            if isinstance(price, GroupsPrice) and price.residency is not None:
                records.append(price.residency)
        return self._by_pool("residency", records)

    def _by_pool(self, name: str, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
        if not records:
            return {}
        pools = dict(zip(("prefill", "decode"), records, strict=False))
        return {name: records[0] if self._pools is None else pools}

    @property
    def tiles(self) -> list[OnTiles]:
        """Prices of the pools, or of all tiles; none of GPUs."""
        return [price for price in self.pools if isinstance(price, OnTiles)]

    def at_end(self, end: End) -> Self:
        """The same on tiles, with prices as low or as high as their errors let them be."""
        return self.priced_by([price.at_end(end) for price in self.tiles])

    def priced_by(self, prices: Sequence[OnTiles]) -> Self:
        """The same with other prices of the pools, or of all tiles."""
        other = copy(self)
        other._price_by(prices)
        return other

    def with_effect(self, effect: OwnEffect) -> Self:
        """The same with an error of prices that counts what their level does not model."""
        other = copy(self)
        other.own_effect = effect
        if other.custom is not None:
            network = other._network(other.custom)
            off_pct = 100 * (effect.factor * (1 + network.error_pct / 100) - 1)
            other._price_on(network._replace(error_pct=off_pct))
        return other

    def _price_at(self, level: RunLevel) -> None:
        found = f"--level: found '{level}' with"
        if isinstance(self.chip, GpuBox):
            raise InputError(f"{found} '{self.chip.name}'; allowed: perf, as a GPU has no tiles")
        if level == "at" and self.custom is not None:
            raise InputError(f"{found} --rtl; allowed with it: perf, lt")
        if level == "at":
            hold_cost(self.tiles)
        runs = level_runs(level)
        self._price_by([price.at_level(runs) for price in self.tiles])

    def _price_by(self, prices: Sequence[OnTiles]) -> None:
        """Take other prices: those of the pools, or of all tiles."""
        if self._pools is None:
            (self._served,) = prices
        else:
            prefill, decode = prices
            self._pools = replace(self._pools, prefill=prefill, decode=decode)

    @property
    def origin(self) -> dict[str, str | None]:
        """Calibration and hash of the network's Verilog; None: there is none."""
        if self.custom is not None:
            name = self.custom.found.told_name(self.custom.spec)
            return {"calibration": name, "rtl_hash": self.custom.rtl_hash}
        if isinstance(self.chip, GpuBox) or not isinstance(self.chip.noc, CalibratedNoc):
            return {"calibration": None, "rtl_hash": None}
        return {"calibration": "rtl", "rtl_hash": measured_rtl_hash()}

    @property
    def shape(self) -> Model:
        """The model, its weights as asked for."""
        weights = self.options.weights
        return self.model if weights is None else self.model.in_one_width(cast(Dtype, weights))

    @property
    def is_as_published(self) -> bool:
        """Whether weights are the model's, every GPU has a part of each expert, no drafts made."""
        options = self.options
        is_whole = options.expert_parallel in (None, 1) and options.draft_tokens is None
        return is_whole and self.shape == self.model

    def parts(self, made: Made) -> list[tuple[Any, dict[Any, int]]]:
        """Prices of the pools on tiles, and the parts of all iterations of a run."""
        return [
            (price, price.parts(cast(Any, counted)))
            for price, counted in zip(self.tiles, made.values(), strict=True)
        ]

    def contents(self) -> dict[str, str]:
        """Hashes of what options that are files hold, but for those that the options keep."""
        held = contents(self.options, **self._named)
        return held | {option: named.content_hash for option, named in self._policies.items()}

    @property
    def _named(self) -> dict[str, Any]:
        """The model and the chips, by the options that name them."""
        found: dict[str, Any] = {"model": self.model, "chip": self.chip}
        return found if self._decode_chip is None else found | {"decode_chip": self._decode_chip}

    @property
    def _policies(self) -> dict[str, PythonName]:
        """Schedulers that are of a user's files, by the options that name them."""
        asked = {name: getattr(self.options, name) for name in _SCHEDULERS}
        return {
            name: PythonName.of(each, dashed(name))
            for name, each in asked.items()
            if each is not None and is_custom(each)
        }

    def run(
        self, seed: int, rate: float | None = None, watch: Watch | None = None
    ) -> dict[str, Any]:
        """Serve the requests of a seed to the end and return the figures.

        Raises:
            InputError: if the load cannot be used.
        """
        options = self.options
        trace = self.load.requests(seed, rate)
        drafts = self._speculation
        speculation = None if drafts is None else replace(drafts, seed=seed)
        limits = Limits(options.kv_tokens, options.max_sequences, options.kv_sram_tokens)
        scheduler = self._scheduler()
        if self._pools is not None:
            return run_disaggregated(
                trace,
                scheduler,
                self._pools,
                slo=options.slo,
                limits=limits,
                speculation=speculation,
                watch=watch,
                beside=self._beside,
            )
        assert self._served is not None
        served, part = self._served, {}
        if isinstance(served, GroupsPrice):
            part = {"share": served.share, "idle_w": served.idle_w}
        return run(
            trace,
            scheduler,
            served,
            slo=options.slo,
            limits=limits,
            speculation=speculation,
            watch=watch,
            beside=self._beside,
            **part,
        )

    def mean(self, rate: float | None = None, watch: Watch | None = None) -> dict[str, Any]:
        """The figures' means over all seeds; else as `run`."""
        return mean_of_runs([self.run(seed, rate, watch) for seed in self.options.every_seed])

    def recorded(self) -> dict[str, Any]:
        """The options as a result keeps them: a trace by its content, an infinite rate as text."""
        options = self.options
        kept = recorded(options, **self._named)
        kept |= {option: named.told for option, named in self._policies.items()}
        if isinstance(self.chip, GpuBox):
            del kept["level"]  # there is one
        if isinstance(self.chip, GpuBox) or self.chip.dies is None:
            kept["expert_parallel"] = options.expert_parallel or 1
        for name in (*MAPPED, *ON_DIES, *ON_GROUPS, *ON_POOLS):
            if not kept[name]:
                del kept[name]
        kept |= self.load.recorded
        if options.rtl is not None:
            kept["rtl"] = Path(options.rtl).name
        if options.rate_rps is not None and math.isinf(options.rate_rps):
            kept["rate_rps"] = "inf"
        return kept

    def _custom_routers(self, spec_file: str) -> "CustomRouters":
        """The custom routers in place of the chip's network."""
        from wafertlm.custom import CustomRouters  # slow to import: only for custom routers

        if isinstance(self.chip, GpuBox):
            raise InputError(
                f"--rtl: found with '{self.chip.name}'; allowed: with chips of tiles, whose "
                "network it stands in for"
            )
        routers = CustomRouters.load(spec_file)
        routers.check_closed_form(f"serving, whose prices are of level {self.options.level},")
        return routers

    def _network(self, routers: "CustomRouters") -> Network:
        assert not isinstance(self.chip, GpuBox)  # as checked
        timing = routers.cut(routers.timing_on(self.chip))
        return Network(timing, routers.combines, routers.worst_error_pct)

    def _check_custom(self) -> None:
        """Hold that custom routers can carry what kernels of an iteration send."""
        for price in self.tiles if self.custom is not None else []:
            assert self.custom is not None
            for _, mapped in self._usual_plans(price):
                program = KERNELS[mapped.kernel].program(mapped.plan)
                self.custom.check_program(program, headers=False)

    def _usual_plans(self, price: OnTiles) -> list[tuple[Place, Mapped]]:
        """A plan of every kernel that may run, and where."""
        made_of = (
            price.iterations.stages(_USUAL)
            if isinstance(price, TilePrice)  # whose prices may have to be measured
            else price.cost(_USUAL).made_of
        )
        of: Any = price
        parts = of.parts(dict.fromkeys(made_of, 1))
        return [(on.place, mapped) for part in parts for on, mapped in of.prices.plans(part)]

    def _check_mapping(self) -> None:
        asked = [name for name in MAPPED if getattr(self.options, name) is not None]
        if asked and isinstance(self.chip, GpuBox):
            raise InputError(
                f"--{asked[0]}: found with '{self.chip.name}'; allowed: with chips of tiles"
            )

    def _parallel(self) -> Parallel | None:
        """How the model, or the prefill pool's, is dealt out to groups of tiles, if it is."""
        pool = "prefill" if self.options.is_disaggregated else ""
        return group_parallel(self.options, self.chip, self.shape, pool)

    def _check_groups(self) -> None:
        """Hold that nothing is asked for that groups of tiles do not have."""
        for name in ("kv_sram_tokens", "expert_parallel", "link_bytes_per_s", "link_latency_s"):
            if (found := getattr(self.options, name)) is not None:
                raise InputError(
                    f"{dashed(name)}: found {found} with groups of tiles; allowed: none"
                )

    def _group_pools(self, chip: Chip, network: Network | None, wanted: int) -> Pools:
        options = self.options
        prefill, decode = (
            group_parallel(options, chip, self.shape, pool) or Parallel()
            for pool in ("prefill", "decode")
        )
        if options.decode_chip is not None:
            found = serving_chip(find_chip(options.decode_chip))
            if isinstance(found, GpuBox):
                raise InputError(f"--decode-chip: found '{found.name}'; allowed: chips of tiles")
            self._decode_chip = found
        asked = GroupPools(
            prefill=prefill,
            decode=decode,
            prefill_units=options.prefill_units,
            decode_units=options.decode_units,
            placement=options.pd_placement or PD_PLACEMENTS[0],
            decode_chip=self._decode_chip,
        )
        return make_group_pools(
            self.shape,
            chip,
            asked,
            network=network,
            choices=options.choices,
            kv_wanted_tokens=wanted,
        )

    @property
    def _beside(self) -> list[Scheduler]:
        """Schedulers of further replicas."""
        if self._pools is not None:
            count = self._pools.replicas[0]
        else:
            served = self._served
            count = len(served.pipelines) if isinstance(served, GroupsPrice) else 1
        return [self._scheduler() for _ in range(count - 1)]

    def _scheduler(self) -> Scheduler:
        options = self.options
        told = SchedulerOptions(
            options.token_budget, options.layer_groups, options.budget_units, options.chunk_units
        )
        parallel = self._parallel()
        micro_batches = 1 if parallel is None else parallel.pipeline
        if not options.is_disaggregated:
            return make_scheduler(options.scheduler, told, micro_batches)
        if options.prefill_scheduler is None and told.token_budget is None:
            told = replace(told, token_budget=_PREFILL_POOL_TOKENS)
        name = options.prefill_scheduler or _PREFILL_POOL_SCHEDULER
        return make_scheduler(name, told, micro_batches)
