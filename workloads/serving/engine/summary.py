"""The figures of a finished run, of the whole and of each of its engines."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workloads.serving.engine.budgeted.engine import BudgetedEngine
from workloads.serving.engine.engine import Engine
from workloads.serving.engine.link import Carrier
from workloads.serving.load.traces import PS_PER_S
from workloads.serving.price.cost import ServingModel
from workloads.serving.result.metrics import Recorder
from workloads.serving.result.usage import PJ_PER_J

#: What serves, one iteration a step or many.
AnyEngine = Engine | BudgetedEngine
#: Replicas of a pool, each with its model and its share of the chip.
Replicas = Sequence[tuple[AnyEngine, ServingModel, float]]
Engines = Mapping[str, Replicas]


class Between(NamedTuple):
    """What takes energy beside two pools.

    Attributes:
        link: Between them.
        carried_byte_j: Energy of a byte that it carried; None where there are no figures.
    """

    link: Carrier
    carried_byte_j: float | None

    def energy_j(self) -> float | None:
        """Energy of what the link carried."""
        each = self.carried_byte_j
        return None if each is None else self.link.carried_bytes * each


def summary(
    recorder: Recorder, engines: Engines, between: Between | None = None, idle_w: float = 0.0
) -> dict[str, Any]:
    """Figures of a run in which every request has finished.

    Beside those of ``Recorder.summary``:

    - ``iterations``, ``expert_load_bytes`` and ``kv`` are sums over the engines; ``peak_tokens``
      counts whole blocks. ``mean_decode_batch`` is the decoding requests of an iteration of those
      that decode. ``utilization`` is over the time from first arrival to last completion, the
      engines weighted by their share of the chip.
    - Energy is what the iterations take, what crosses between pools, and static power over that
      time, of units in no pool too; per output token, and per token of prompt and output. It is
      None where a part of it is not known.
    - ``pools`` has the same by engine if there are several, and the ``link`` between them.
    """
    figures = recorder.summary()
    span_s = figures["span_s"]
    parts = {name: _pool(replicas, span_s) for name, replicas in engines.items()}
    decode = [engine.usage.counted() for engine, *_ in list(engines.values())[-1]]
    decoded, iterations = (
        sum(getattr(usage, name) for usage in decode) for name in ("decoded", "decode_iterations")
    )
    energies = [part["energy_j"] for part in parts.values()]
    if between is not None:
        energies.append(between.energy_j())
    if between is not None or idle_w:
        energies.append(idle_w * span_s)
    joules = _sum_or_none(energies)
    tokens = figures["prompt_tokens"] + figures["output_tokens"]
    return {
        **figures,
        "iterations": sum(part["iterations"] for part in parts.values()),
        "mean_decode_batch": decoded / iterations if iterations else None,
        "energy_j": joules,
        "energy_mj_per_output_token": _per(joules, figures["output_tokens"]),
        "energy_mj_per_token": _per(joules, tokens),
        "expert_load_bytes": sum(part["expert_load_bytes"] for part in parts.values()),
        "kv": {
            **_kv_sums(parts),
            "preemptions": recorder.preemptions,
        },
        "utilization": sum(part["utilization"] * part["share"] for part in parts.values()),
        "pools": None if between is None else parts | {"link": _link(between, span_s)},
    }


def _pool(replicas: Replicas, span_s: float) -> dict[str, Any]:
    """Figures of a pool: sums over its replicas, or means of parts of the time."""
    parts = [_part(*each, span_s) for each in replicas]
    first, count = parts[0], len(parts)
    if count == 1:
        return first
    summed = ("share", "iterations", "energy_j", "expert_load_bytes")
    found = {name: _sum_or_none([part[name] for part in parts]) for name in summed}
    means = ("busy_fraction", "utilization")
    found |= {name: sum(part[name] for part in parts) / count for name in means}
    kv = {name: sum(part["kv"][name] for part in parts) for name in first["kv"]}
    return {name: (found | {"kv": kv, "replicas": count})[name] for name in [*first, "replicas"]}


def _part(engine: AnyEngine, model: ServingModel, share: float, span_s: float) -> dict[str, Any]:
    usage, kv = engine.usage.counted(), engine.kv
    dynamic_j = None if usage.energy_pj is None else usage.energy_pj / PJ_PER_J
    static_w = model.static_power_w
    return {
        "share": share,
        "iterations": usage.iterations,
        "busy_fraction": usage.busy_ps / PS_PER_S / span_s,
        "energy_j": _sum_or_none([dynamic_j, None if static_w is None else static_w * span_s]),
        "expert_load_bytes": usage.expert_bytes,
        "kv": {
            "capacity_tokens": kv.capacity_tokens,
            "peak_tokens": kv.peak_tokens,
            "spilled_bytes": kv.spilled_tokens * model.kv_bytes_per_token,
        },
        "utilization": model.utilization(usage.work, span_s),
    }


def _kv_sums(parts: Mapping[str, Any]) -> dict[str, int]:
    names = ("capacity_tokens", "peak_tokens", "spilled_bytes")
    return {name: sum(part["kv"][name] for part in parts.values()) for name in names}


def _link(between: Between, span_s: float) -> dict[str, float | None]:
    return {
        "carried_bytes": between.link.carried_bytes,
        "busy_fraction": between.link.busy_ps / PS_PER_S / span_s,
        "energy_j": between.energy_j(),
    }


def _sum_or_none(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _per(joules: float | None, tokens: int) -> float | None:
    return None if joules is None else joules * 1e3 / tokens
