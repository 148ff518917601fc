"""Numbers as the report writes them."""


def count(value: float) -> str:
    """A whole number in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def figure(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    if abs(value) >= 10**digits:
        return count(value)
    return f"{value:.{digits}g}"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if not value:
        return figure(value)
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{figure(value / scale)}\N{NO-BREAK SPACE}{unit}"
    return f"{figure(value / 1e-9)}\N{NO-BREAK SPACE}ns"
