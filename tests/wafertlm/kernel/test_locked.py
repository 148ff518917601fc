"""The locked router as the network of a chip: what waits for a lock, where, and what does not."""

from typing import Any

import pytest

from tlm.chips import find_tiles
from tlm.errors import InputError
from wafertlm.kernel import KernelOptions, run_kernel

LOCKED = "noc.channel=output"
FREE = "noc.channel=none"


def ran(placement: str, grid: str, channel: str, partition: str = "mn", level: str = "at") -> Any:
    return run_kernel(
        KernelOptions(
            kernel="partitioned-gemm",
            chip="npusim-large",
            grid=grid,
            shape="256,2048,2048",
            dtype="bf16",
            level=level,
            partition=partition,
            placement=placement,
            allow_stale=True,
            set=(channel, "noc.flit_bytes=16"),
        )
    )


@pytest.mark.parametrize("partition", ["mn", "k"])
def test_flows_that_meet_wait_for_locks_and_a_ring_does_not(partition: str) -> None:
    """On a line the way back to the first tile meets the acknowledges of the others."""
    line = ran("linear", "1x4", LOCKED, partition)
    ring = ran("ring", "2x2", LOCKED, partition)
    free = [ran(*each, FREE, partition) for each in (("linear", "1x4"), ("ring", "2x2"))]
    assert line.cycles > 1.5 * ring.cycles
    assert line.network["most_waited_cycles"] > 0.25 * line.cycles
    assert line.network["most_waited"].split()[1] in ("east", "west")
    assert ring.network["waited_cycles"] < 10
    assert [each.network["waited_cycles"] for each in free] == [0, 0]
    assert free[0].cycles == pytest.approx(free[1].cycles, rel=1e-3)
    assert ring.cycles == pytest.approx(free[1].cycles, rel=1e-3)


def test_sixteen_interleaved_tiles_wait_for_each_other() -> None:
    interleaved, ring = ran("interleave", "2x8", LOCKED), ran("ring", "2x8", LOCKED)
    assert interleaved.cycles > 1.5 * ring.cycles
    assert ran("interleave", "2x8", FREE).network["waited_cycles"] == 0
    assert ring.network["waited_cycles"] < 100


def test_the_formula_knows_the_handshake_and_no_lock() -> None:
    """A ring is as fast as the formula says; what a line waits for is left out."""
    for placement, grid in (("ring", "2x2"), ("linear", "1x4")):
        form = ran(placement, grid, LOCKED, level="perf").cycles
        plain = ran(placement, grid, FREE, level="perf").cycles
        assert plain < form < plain + 1000
    ring = [ran("ring", "2x2", LOCKED, level=level).cycles for level in ("perf", "at")]
    assert ring[0] == pytest.approx(ring[1], rel=1e-3)


def test_what_locked_channels_do_not_carry() -> None:
    with pytest.raises(InputError) as error:
        ran("ring", "2x2", LOCKED, level="lt")
    assert str(error.value) == "channel: found output; allowed at level lt: none"
    with pytest.raises(InputError) as error:
        run_kernel(
            KernelOptions(
                kernel="summa",
                chip="npusim-large",
                grid="2x2",
                shape="64,64,64",
                dtype="bf16",
                level="at",
                set=(LOCKED,),
            )
        )
    assert "multicast" in str(error.value)
    with pytest.raises(InputError) as error:
        find_tiles("npusim-large", (LOCKED, "noc.reduce_cycles=1"))
    assert "channel: found output with reduce_cycles; allowed: none" in str(error.value)
