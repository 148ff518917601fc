"""Custom routers that are compared: calibrated if they are not yet."""

from pathlib import Path

from tlm.errors import InputError
from wafertlm.output import log
from wafertlm.stopwatch import Stopwatch
from wafertlm.verilog import failing_checks


def calibrate_if_need_be(spec_file: str, watch: Stopwatch, *, quick: bool = False) -> None:
    """Calibrate custom routers of which no calibration is stored, or a stale one.

    Args:
        spec_file: Their specification.
        watch: Measures what it costs.
        quick: On the size of the fit alone, and of fewer check cases.

    Raises:
        InputError: if the specification is wrong.
        CheckFailedError: if the Verilog cannot be built.
    """
    # Slow to import: only for custom routers.
    from calibration.routers.custom import calibrate_custom
    from calibration.routers.stored import load_custom
    from cosim.spec.mesh import load_spec

    spec = load_spec(Path(spec_file))
    try:
        load_custom(spec)
    except InputError as error:
        log(f"calibrating: {error}")
        with failing_checks():
            calibrate_custom(spec, store_quick=quick, progress=log, building=watch.compiling)
