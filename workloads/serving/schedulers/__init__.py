"""Schedulers: what is computed in an iteration."""

from workloads.serving.schedulers.base import Chunk, Plan, Queue, Scheduler
from workloads.serving.schedulers.choice import SCHEDULERS, SchedulerOptions, make_scheduler
from workloads.serving.schedulers.chunked import Chunked
from workloads.serving.schedulers.continuous import Continuous
from workloads.serving.schedulers.custom import is_custom
from workloads.serving.schedulers.layered import Layered
from workloads.serving.schedulers.pd_fusion import PdFusion
from workloads.serving.schedulers.static import Static

__all__ = [
    "SCHEDULERS",
    "Chunk",
    "Chunked",
    "Continuous",
    "Layered",
    "PdFusion",
    "Plan",
    "Queue",
    "Scheduler",
    "SchedulerOptions",
    "Static",
    "is_custom",
    "make_scheduler",
]
