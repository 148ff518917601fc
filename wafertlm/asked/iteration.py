"""What a user says of an iteration: the model, the chip, what is computed, and at which levels."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

from tlm.errors import InputError, check_range
from wafertlm.asked import shared
from wafertlm.asked.kernel import COMPUTE_LEVELS, MEMORY_LEVELS
from wafertlm.asked.mapped import ROUTINGS
from wafertlm.options import NAME_OR_FILE, Flag

if TYPE_CHECKING:  # slow to import: only to run
    from workloads.serving.price.cost import Batch

LEVELS = ("perf", "lt", "at")
#: More is no iteration that anybody runs, and takes long to plan.
_MOST_NEW, _MOST_TOKENS = 1_000_000, 10_000_000
_PREFILL = re.compile(r"([1-9][0-9]{0,18})(?:@([0-9]{1,18}))?")
_DECODE = re.compile(r"([1-9][0-9]{0,18})@([1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationOptions:
    """An iteration, where it runs and at which levels; None where not given."""

    model: Annotated[str, "Model: a shipped one, a TOML file, or a config.json.", NAME_OR_FILE]
    chip: shared.Chip
    prefill: Annotated[
        tuple[str, ...],
        "New tokens of a prompt, and those in the cache before (repeatable).",
        Flag(metavar="NEW[@CONTEXT]"),
    ] = ()
    decode: Annotated[
        str | None, "Decoding requests, and the cached tokens of each.", Flag(metavar="N@CONTEXT")
    ] = None
    level: Annotated[str, "Level of all parts: perf, lt or at."] = "perf"
    noc: Annotated[str | None, "Level of the network, if another."] = None
    memory: Annotated[str | None, "Level of off-chip memory, if another: at or perf."] = None
    compute: Annotated[str | None, "Level of the matrix engine, if another: at or perf."] = None
    rtl: shared.Network = None
    grid: Annotated[
        str | None,
        "ROWSxCOLS of tiles: of the chip, default all, or of a region, default tuned.",
    ] = None
    collective: shared.Collective = None
    schedule: shared.Schedule = None
    group: shared.Group = None
    draft_tokens: Annotated[
        int | None, "Tokens drafted for each decoding request, which are verified too."
    ] = None
    expert_parallel: Annotated[int | None, "Dies that experts are dealt out to."] = None
    tp: shared.Tensor = None
    pp: shared.Pipeline = None
    dp: shared.Replicas = None
    micro_batch: shared.MicroBatch = None
    partition: shared.Partition = None
    placement: shared.Placement = None
    stage_rows: shared.StageRows = None
    routing: shared.Routing = None
    links: Annotated[str | None, "Level between dies: perf (default) or lt."] = None
    merge_copies: shared.MergeCopies = False
    overlap: shared.Overlap = False
    allow_stale: shared.AllowStale = False
    set: shared.Set = ()

    @property
    def batch(self) -> "Batch":
        """What is computed; every prompt chunk and every decoding request gives a next token.

        Raises:
            InputError: if nothing is, or it is written in another form.
        """
        from workloads.serving.engine.speculation import MOST_DRAFTED
        from workloads.serving.price.cost import Batch

        prefills = tuple(_prefill(text) for text in self.prefill)
        sequences = context = 0
        if self.decode is not None:
            found = _DECODE.fullmatch(self.decode)
            if found is None:
                _refuse("--decode", self.decode, "N@CONTEXT, such as 32@2048")
            sequences, context = int(found[1]), int(found[2])
            check_range("--decode: requests", sequences, 0, _MOST_NEW)
            check_range("--decode: tokens of each", context, 0, _MOST_TOKENS)
        if not prefills and not sequences:
            raise InputError("iteration: found no work; give --prefill, --decode or both")
        width = 1
        if self.draft_tokens is not None:
            check_range("--draft-tokens", self.draft_tokens, 1, MOST_DRAFTED)
            width += self.draft_tokens
        heads = len(prefills) + sequences * width
        return Batch(prefills, sequences, sequences * context, heads, decode_width=width)


def known_names() -> dict[str, list[str]]:
    """What the options may name."""
    from tlm.chips import chip_names
    from workloads.models import model_names

    return {
        "models": list(model_names()),
        "chips": list(chip_names()),
        "levels": list(LEVELS),
        "memory": list(MEMORY_LEVELS),
        "compute": list(COMPUTE_LEVELS),
        **shared.variant_names(),
        "routings": list(ROUTINGS),
        **shared.dealing_names(),
    }


def _prefill(text: str) -> tuple[int, int]:
    found = _PREFILL.fullmatch(text)
    if found is None:
        _refuse("--prefill", text, "NEW or NEW@CONTEXT, such as 512@1024")
    new, context = int(found[1]), int(found[2] or 0)
    check_range("--prefill: new tokens", new, 1, _MOST_NEW)
    check_range("--prefill: context", context, 0, _MOST_TOKENS)
    return new, context


def _refuse(option: str, text: str, form: str) -> NoReturn:
    raise InputError(f"{option}: found '{text}'; write {form}")
