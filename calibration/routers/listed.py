"""All experiments on a mesh, in order."""

from typing import Any

from calibration.experiment import Experiment
from calibration.routers.buffering import Buffering
from calibration.routers.collective import SoftwareCollectives
from calibration.routers.contention import Contention
from calibration.routers.hang import Hang
from calibration.routers.locking import LockedBuffering, LockedContention, LockedUnicast
from calibration.routers.mix import MixCheck
from calibration.routers.multicast import Multicast
from calibration.routers.reduction import Reduction
from calibration.routers.subject import Subject
from calibration.routers.traffic import TrafficCheck
from calibration.routers.unicast import Unicast


def experiments(subject: Subject) -> list[Experiment[Any]]:
    """Those that a mesh of these features allows; later ones rest on what earlier ones found.

    The last one rests on costs of the project's tiles, too.
    """
    listed: list[Experiment[Any]] = [Buffering(subject), Unicast(subject), Contention(subject)]
    if subject.locks:
        listed = [LockedBuffering(subject), LockedUnicast(subject), LockedContention(subject)]
    if subject.multicasts:
        listed.append(Multicast(subject))
    if subject.reductions:
        listed.append(Reduction(subject))
    listed.append(TrafficCheck(subject))
    if subject.multicasts or subject.reductions:
        listed.append(MixCheck(subject))
    if subject.multicasts or subject.reductions:
        listed.append(Hang(subject))
    return [*listed, SoftwareCollectives(subject)]
