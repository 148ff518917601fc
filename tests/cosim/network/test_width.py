"""Cycles of the project's mesh do not depend on how wide the payload of its flits is."""

import numpy as np
import pytest

from cosim.network.deliveries import simulate
from cosim.network.model import LoopModel
from tests.specifications import Changed
from tlm.interconnect.traffic import Traffic


@pytest.mark.rtl
@pytest.mark.slow
def test_cycles_do_not_depend_on_the_width_of_flits(changed_mesh: Changed) -> None:
    seen = []
    for bits in (64, 512):
        spec = changed_mesh(
            ("FifoDepth = 4 }", f"FifoDepth = 4, PayloadWidth = {bits} }}"),
            ('field = "payload"\nbits = 64', f'field = "payload"\nbits = {bits}'),
        )
        traffic = Traffic(
            rows=4, cols=4, pattern="uniform", rate=0.3, packet_flits=4, cycles=400, seed=7,
            multicast_fraction=0.2, multicast_flits=4,
        )  # fmt: skip
        model = LoopModel(spec, 4, 4)
        model.build()
        seen.append(simulate(model, traffic.packets()))
    narrow, wide = seen
    assert narrow.tail_ejected.max() > 400
    for name in ("head_injected", "head_ejected", "tail_ejected"):
        assert np.array_equal(getattr(narrow, name), getattr(wide, name)), name
