"""Which of several trials are better: for the result, and for pruning at a cheaper level."""

from collections.abc import Mapping, Sequence

from wafertlm.explore.file import ExploreFile, is_of_gates

Figures = Mapping[str, float | int | None]


def is_feasible(asked: ExploreFile, figures: Figures, margin_pct: float = 0.0) -> bool:
    """Whether all figures are within their bounds, or out of them by no more than a margin."""
    for path, bound in asked.constraints.items():
        figure = figures[path]
        if figure is None:
            return False
        allowed = 0.0 if is_of_gates(path) else abs(figure) * margin_pct / 100
        if bound.excess(figure) > allowed:
            return False
    return True


def is_better(
    asked: ExploreFile, mine: Figures, other: Figures, margin_pct: float | None = None
) -> bool:
    """Whether figures are no worse than others in all objectives, and better in one.

    With a margin they have to be better by so many per cent of the others in each objective, but in
    gates, which are the same at all levels.
    """
    is_strict = False
    for path, direction in asked.objectives.items():
        sign = 1 if direction == "minimize" else -1
        a, b = mine[path], other[path]
        if a is None or b is None:
            return False
        if margin_pct is None or is_of_gates(path):
            if sign * a > sign * b:
                return False
            is_strict |= sign * a < sign * b
        elif not sign * a < sign * b - abs(b) * margin_pct / 100:
            return False
        else:
            is_strict = True
    return is_strict


def front(asked: ExploreFile, found: Mapping[int, Figures]) -> dict[int, list[int]]:
    """Trials than which none is better, in order of the first objective.

    Returns:
        Their numbers; of those with equal objectives the first, and the others' numbers with it.
    """
    feasible = [number for number in sorted(found) if is_feasible(asked, found[number])]
    equal: dict[tuple[float, ...], list[int]] = {}
    for number in feasible:
        equal.setdefault(_losses(asked, found[number]), []).append(number)
    firsts = [numbers[0] for numbers in equal.values()]
    return {
        first: others
        for _, (first, *others) in sorted(equal.items())
        if not any(is_better(asked, found[other], found[first]) for other in firsts)
    }


def is_pruned(asked: ExploreFile, mine: Figures, others: Sequence[Figures]) -> bool:
    """Whether a trial ends after a cheaper level, by what is known of it and others there."""
    assert asked.pruning is not None
    margin_pct = asked.pruning.margin_pct
    if not is_feasible(asked, mine, margin_pct):
        return True
    return any(
        is_feasible(asked, other) and is_better(asked, other, mine, margin_pct) for other in others
    )


def _losses(asked: ExploreFile, figures: Figures) -> tuple[float, ...]:
    return tuple(
        float(figures[path] or 0) * (1 if direction == "minimize" else -1)
        for path, direction in asked.objectives.items()
    )
