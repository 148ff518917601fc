"""From the parameters that experiments find of a mesh to the timing that the model takes."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from calibration.experiment import Parameters
from tlm.interconnect.zero_load import (
    ARBITERS,
    CHANNELS,
    FORKS,
    UNIT_CHOICES,
    NocTiming,
)

#: Inputs of a router as parameters name their places in line; the reduction unit is the sixth.
PORTS = ("local", "north", "east", "south", "west")
#: Experiments that identify the timing; later ones rest on what earlier ones found.
IDENTIFIED = ("buffering", "unicast", "contention", "multicast", "reduction")
#: Fields of `NocTiming` that are parameters of the same name, and what makes them of a number.
_FIELDS: dict[str, Callable[[int], object]] = {
    "hop_cycles": int,
    "ejection_cycles": int,
    "link_interval_cycles": int,
    "fifo_depth": int,
    "output_depth": int,
    "tile_depth": int,
    "y_first": bool,
    "arbiter": ARBITERS.__getitem__,
    "lock_on_transfer": bool,
    "return_cycles": int,
    "turnaround_cycles": int,
    "fork": FORKS.__getitem__,
    "cut_through": bool,
    "loopback": bool,
    "reduce_cycles": int,
    "reduce_interval_cycles": int,
    "operand_limit": int,
    "operands_share": bool,
    "unit_choice": UNIT_CHOICES.__getitem__,
    "unit_arbiter": ARBITERS.__getitem__,
    "unit_lock_on_transfer": bool,
    "unit_places": int,
    "unit_return_cycles": int,
    "channel": CHANNELS.__getitem__,
    "request_cycles": int,
    "acknowledge_cycles": int,
    "data_cycles": int,
}


def timing_of(found: Mapping[str, Parameters], unknown: NocTiming) -> NocTiming:
    """The timing of a mesh.

    Args:
        found: Parameters by experiment.
        unknown: What holds where nothing has been found.
    """
    fields: dict[str, object] = {}
    line = unknown.line
    for experiment in IDENTIFIED:
        values = {name: round(p.value) for name, p in found.get(experiment, {}).items()}
        fields |= {name: make(values[name]) for name, make in _FIELDS.items() if name in values}
        if "place_local" in values:
            line = _line({port: values[f"place_{name}"] for port, name in enumerate(PORTS)})
        if experiment == "multicast" and "gap_cycles" in values:
            fields["multicast_gap_cycles"] = values["gap_cycles"]
        if "place_reduction" in values:
            line = unit_at(line, values["place_reduction"])
    if "tile_depth" in fields and fields["tile_depth"] == fields["output_depth"]:
        fields["tile_depth"] = None
    timing = replace(unknown, line=line, **fields)  # type: ignore[arg-type]  # of their fields
    plain = replace(timing, unit_places=None)
    return plain if plain.result_places == timing.result_places else timing


def unit_at(line: tuple[int, ...], place: int) -> tuple[int, ...]:
    """A line with the reduction unit at another place among the inputs."""
    inputs = [port for port in line if port < len(PORTS)]
    return (*inputs[:place], len(PORTS), *inputs[place:])


def _line(places: Mapping[int, int]) -> tuple[int, ...]:
    """A line in which each port stands at its place, and the reduction unit at what is left."""
    port_at = {place: port for port, place in places.items()}
    return tuple(port_at.get(place, len(PORTS)) for place in range(len(PORTS) + 1))
