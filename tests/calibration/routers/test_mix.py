"""Mixed loads of a mesh that does not know all kinds of packets."""

from types import SimpleNamespace
from typing import Any

from calibration.routers.mix import Mix, MixCheck


def test_unicasts_alone_where_reductions_may_not_meet() -> None:
    # Cut-through, but routers that combine two operands only: crowds of reductions may hang.
    subject: Any = SimpleNamespace(
        timing=SimpleNamespace(cut_through=True, y_first=False),
        multicasts=False,
        crosses_reductions=False,
        packet_flits=4,
        sends_to_itself=False,
    )
    packets = MixCheck(subject).packets(Mix((4, 4), (4, 4), 0.1, (1.0, 0.0, 0.0)))
    assert len(packets) == 800
    assert set(packets.flits.tolist()) == {1, 2, 3, 4}
