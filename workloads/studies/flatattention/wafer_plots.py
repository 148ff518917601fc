"""Plots of figure 13: throughput, a layer's time, and groups of dies on the wafer."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlm.plotting import (
    COLOURS,
    INK,
    Curve,
    direct_labels,
    plain_ticks,
    published,
    series,
)
from workloads.studies.flatattention.panels import Found, model_values, panels
from workloads.studies.flatattention.wafer import (
    BATCHES,
    GROUPS,
    GROUPS_BATCHES,
    PUBLISHED,
    TPOT_LIMIT_MS,
)

_KERNELS = ("FlatMLA", "FlashMLA")
#: And those of the authors' simulator.
_ALL_KERNELS = (*_KERNELS, "ChunkedMLA", "RequestMLA")


def batches(found: Found) -> Any:
    """Figure 13a: throughput over the time of a token, by requests of a die."""
    figure, axes = panels(1, 1, 6.5, 4)
    axis, curves = axes[0][0], []
    for number, name in enumerate(_KERNELS):
        at = [f"F13a/EP32-PP2/{name}-b{batch}" for batch in BATCHES]
        curves += _trade(axis, found, at, [str(batch) for batch in BATCHES], name, number)
    ours = "TII/Ours1/EP32-PP2-b256"
    _star(axis, found, ours, "paper: 256 requests", curves)
    for name, _, batch, *_ in PUBLISHED:
        _star(axis, found, f"TII/{name}/b{batch}", f"{name}, published", curves)
    axis.set(title="DeepSeek-V3 decodes on 64 dies, in two groups of 32")
    _finish_trade(axis, curves, "numbers: requests of a die; stars: the paper's table II")
    return figure


def layer(found: Found) -> Any:
    """Figure 13b: a layer's time, and what is stated of its attention."""
    figure, [(times, shares, faster)] = panels(1, 3, 9.5, 3.2)
    at = "F13b/layer-b256"
    every = [f"{at}/{name}" for name in _ALL_KERNELS]
    kernels, share, links = (
        model_values(found, [f"{each}/{part}" for each in every])
        for part in ("kernels", "attention_share", "links")
    )
    attention = kernels * share / 100
    bottom = np.zeros(len(_ALL_KERNELS))
    parts = {"attention": attention, "other kernels": kernels - attention, "links": links}
    for (label, values), colour in zip(parts.items(), COLOURS, strict=False):
        times.bar([*_ALL_KERNELS], values, 0.6, bottom, color=colour, label=label)
        bottom += values
    times.set(title="time of a layer", ylabel="ms")
    times.tick_params(axis="x", labelsize="small", rotation=20)
    stated = {
        "share of time,\nFlatMLA": f"{at}/FlatMLA/attention_share",
        "share of time,\nFlashMLA": f"{at}/FlashMLA/attention_share",
        "use of engines,\nFlatMLA": f"{at}/FlatMLA/attention_use",
    }
    _stated(shares, found, stated)
    shares.set(title="attention, among the kernels", ylabel="%", ylim=(0, 100))
    shares.tick_params(axis="x", labelsize="small")
    stated = {
        "attention": f"{at}/FlatMLA/attention_over_FlashMLA",
        "layer": f"{at}/FlatMLA/layer_over_FlashMLA",
    }
    _stated(faster, found, stated)
    faster.set(title="FlatMLA over FlashMLA", ylabel="speed-up")
    for axis in (times, faster):
        plain_ticks(axis.yaxis)
    title = "a layer with experts, 256 requests a die; stars: the paper"
    figure.legend(
        *times.get_legend_handles_labels(), loc="outside upper center", ncols=3, title=title
    )
    return figure


def groups(found: Found) -> Any:
    """Figures 13c and d: throughput over a token's time, and time on links, by groups of dies."""
    figure, [(trade, links)] = panels(1, 2, 9.5, 4)
    curves, shares = [], []
    for number, (dies, stages) in enumerate(GROUPS):
        at = [f"F13cd/EP{dies}-PP{stages}/b{batch}" for batch in GROUPS_BATCHES]
        told = [str(batch) for batch in GROUPS_BATCHES]
        curves += _trade(trade, found, at, told, f"EP{dies}-PP{stages}", number)
    trade.set(title="DeepSeek-V3 decodes on 64 dies in groups")
    _finish_trade(trade, curves, "numbers: requests of a die; EP: dies of a group, PP: groups")
    places = range(len(GROUPS))
    for number, batch in enumerate(GROUPS_BATCHES):
        at = [f"F13cd/EP{dies}-PP{stages}/b{batch}" for dies, stages in GROUPS[::-1]]
        on_links, computed = (
            model_values(found, [f"{name}/{part}" for name in at]) for part in ("links", "kernels")
        )
        values = 100 * on_links / (on_links + computed)
        shares.append(series(links, places, list(values), f"{batch} requests a die", number))
    links.set_xticks(places, [str(dies) for dies, _ in GROUPS[::-1]])
    links.set(title="time on links between dies", xlabel="dies of a group, which share the experts")
    links.set(ylabel="part of a layer's time (%)", ylim=(0, None))
    plain_ticks(links.yaxis)
    direct_labels(links, shares)
    return figure


def _trade(
    axis: Any, found: Found, at: list[str], told: list[str], text: str, number: int
) -> list[Curve]:
    """Throughput over the time of a token: the line, and its points with a number each."""
    tpot, throughput = (
        model_values(found, [f"{name}/{metric}" for name in at])
        for metric in ("tpot", "throughput")
    )
    line = series(axis, list(tpot), list(throughput), text, number)
    points = zip(tpot, throughput, told, strict=True)
    known = [each for each in points if np.isfinite(each[0] + each[1])]
    return [line, *(Curve([x], [y], label, line.colour) for x, y, label in known)]


def _star(axis: Any, found: Found, at: str, text: str, curves: list[Curve]) -> None:
    x, y = (found[f"{at}/{metric}"]["paper"] for metric in ("tpot", "throughput"))
    published(axis, [x], [y])
    curves.append(Curve([x], [y], text, INK))


def _finish_trade(axis: Any, curves: list[Curve], about: str) -> None:
    axis.axvline(TPOT_LIMIT_MS, color=INK, linewidth=0.8, linestyle=":")
    axis.set(xlabel=f"time of a token (ms); dots: the limit of {TPOT_LIMIT_MS:g} ms\n{about}")
    axis.set(ylabel="tokens/s of a die", xlim=(0, None), ylim=(0, None))
    plain_ticks(axis.xaxis)
    plain_ticks(axis.yaxis)
    # Lines first: they choose where they stand.
    direct_labels(axis, sorted(curves, key=lambda curve: len(curve.x), reverse=True))


def _stated(axis: Any, found: Found, names: Mapping[str, str]) -> None:
    """Bars of the model, with stars where the paper has them."""
    bars = axis.bar([*names], model_values(found, [*names.values()]), 0.6, color=COLOURS[0])
    axis.bar_label(bars, fmt="%.3g", fontsize="small", label_type="center", color="white")
    published(axis, range(len(names)), [found[name]["paper"] for name in names.values()])
