"""What a search over plans finds."""

from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


class Found(NamedTuple, Generic[P]):
    """The fastest plan of a problem.

    Attributes:
        plan: The plan.
        cycles: By its closed form.
    """

    plan: P
    cycles: int
