"""Verdicts on P, L, M and R: whether a program suits a wafer, each against a bound.

The properties are those of WaferLLM (OSDI 2025, section 3.1), the measures of L those of its
sections 5.1 and 6.1. A program in which a tile multiplies more than once works in steps: no
transfer may be longer than the two hops that a cycle over a line needs. Of others, which multiply
and then sum up, the whole chain counts: no more routing stages than a two-level tree has, and no
more hops than to the end of a line and back.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tlm.check.report import Report, TileLimits
from tlm.check.routes import Routes
from tlm.program import Engine, Program

_STEP_HOPS = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a program has a property.

    Attributes:
        letter: Of the property.
        holds: Whether it has it.
        measure: What was measured, in words.
        found: Its value; of two measures the one that misses.
        bound: The most it may be, of P the least; None: nothing bounds it, as the chip knows no
            limit, or no tile has work.
    """

    letter: Literal["P", "L", "M", "R"]
    holds: bool
    measure: str
    found: float
    bound: float | None


def verdicts(report: Report, grid: tuple[int, int]) -> tuple[Verdict, Verdict, Verdict, Verdict]:
    """The verdicts on a program of a grid's rows and columns, in the order of the letters."""
    routing = _routing(report.routing.most_paths, report.routing.limit_paths)
    return _parallelism(report), _latency(report, max(grid)), _memory(report), routing


def of_transfers(program: Program, limits: TileLimits) -> list[Verdict]:
    """The verdicts that transfers alone tell: on L where a program works in steps, and on R.

    Operations are taken to fit the program.
    """
    routes, hops = Routes(program), 0
    products, steps = np.zeros((program.rows, program.cols), dtype=np.int8), False
    for operation in (each.within_tiles() for each in program.built()):
        routes.add(operation)
        hops = max(hops, operation.longest_hops if operation.transfers else 0)
        if operation.engine is Engine.MATRIX and not steps:
            products[operation.near.part] += 1
            steps = bool(products.max() > 1)
    routing = _routing(int(routes.paths().max()), limits.routing_paths)
    return [_steps(hops), routing] if steps else [routing]


def _parallelism(report: Report) -> Verdict:
    """All tiles have work; where there is none, as in an exchange, nothing is judged."""
    share = report.parallelism.busy_share
    bound = 1.0 if share else None
    return Verdict("P", bound is None or share == 1.0, "share of the tiles that work", share, bound)


def _latency(report: Report, length: int) -> Verdict:
    latency = report.latency
    if report.parallelism.products > 1:
        return _steps(latency.longest_hops)
    hops = _most("L", "hops of the longest chain", latency.chain_hops, 2 * (length - 1))
    stages = math.isqrt(length - 1) + 2  # the square root rounded up, and one for uneven groups
    routed = _most("L", "routing stages of the longest chain", latency.chain_stages, stages)
    return hops if routed.holds and not hops.holds else routed


def _steps(longest_hops: int) -> Verdict:
    return _most("L", "hops of a step's longest transfer", longest_hops, _STEP_HOPS)


def _memory(report: Report) -> Verdict:
    memory = report.memory
    return _most("M", "bytes of the fullest tile", memory.peak_bytes, memory.limit_bytes)


def _routing(most_paths: int, limit_paths: int | None) -> Verdict:
    return _most("R", "routes of the busiest router", most_paths, limit_paths)


def _most(letter: Literal["L", "M", "R"], measure: str, found: int, bound: int | None) -> Verdict:
    return Verdict(letter, bound is None or found <= bound, measure, found, bound)
