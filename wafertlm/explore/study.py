"""An exploration as a study of Optuna: its trials, what is known of them, and what is next.

A trial runs at each level in turn. What it gave is an attribute of the trial as soon as it is
there, so what is next follows from the study alone: by whom, and after which death, is all one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from tlm.errors import InputError
from wafertlm.explore.answer import Answer
from wafertlm.explore.file import NONE, ExploreFile
from wafertlm.explore.pareto import Figures, front, is_pruned
from wafertlm.explore.question import Question, hold_figure
from wafertlm.explore.samplers import learns, sampler_of
from wafertlm.explore.space import Space
from wafertlm.explore.store import Claims

# Attributes of trials, and of the study.
_ANSWER, _WHY, _COPIED = "answer:", "why", "copied_from"
_CONFIRMED, _CHOSEN = "confirmed:", "chosen"
#: The level of the options.
OWN = "own"


class Due(NamedTuple):
    """What is next for a trial.

    Attributes:
        number: Of the trial.
        level: That it runs at; None: nothing runs, all is known.
        state: What it ends as, if it does.
        why: Why it failed or was pruned.
        copied_from: The trial of the same point, if there is one before.
        confirms: Whether it is one of the best, which runs again.
    """

    number: int
    level: str | None = None
    state: TrialState | None = None
    why: str | None = None
    copied_from: int | None = None
    confirms: bool = False


@dataclass(frozen=True)
class Known:
    """What is known of a trial.

    Attributes:
        number: Of the trial.
        point: A value of each parameter.
        is_torn: Whether values are missing: a run died as it chose them.
        state: Where it stands.
        answers: What it gave, by level.
        why: Why it failed or was pruned.
        copied_from: The trial of the same point, if there is one before.
    """

    number: int
    point: Mapping[str, Any]
    is_torn: bool
    state: TrialState
    answers: Mapping[str, Answer]
    why: str | None
    copied_from: int | None

    @classmethod
    def of(cls, trial: FrozenTrial, names: Sequence[str]) -> "Known":
        """What the study says of a trial."""
        kept = trial.user_attrs
        return cls(
            number=trial.number,
            point={name: trial.params[name] for name in names if name in trial.params},
            is_torn=len(trial.params) < len(names),
            state=trial.state,
            answers={
                name.removeprefix(_ANSWER): Answer.model_validate(each)
                for name, each in kept.items()
                if name.startswith(_ANSWER)
            },
            why=kept.get(_WHY),
            copied_from=kept.get(_COPIED),
        )

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return bool(self.state.is_finished())

    @cached_property
    def place(self) -> str:
        """Its point, the same for copies."""
        return repr(sorted(self.point.items()))

    @property
    def figures(self) -> Figures:
        """Its figures at the level of the options."""
        return self.answers[OWN].figures


class Exploration:
    """A study, and what is next in it.

    Args:
        question: What is explored.
        space: Its points.
        storage: Where the study lies.
        claims: Who runs what.
        name: Of the study.
    """

    def __init__(
        self, question: Question, space: Space, storage: RDBStorage, claims: Claims, name: str
    ) -> None:
        self.question, self.claims = question, claims
        self._space, self._storage = space, storage
        self._finished: dict[int, Known] = {}
        self._best: dict[int, list[int]] = {}
        asked = question.asked
        self._trials = asked.trials or 0
        self._levels = [*(asked.pruning.levels if asked.pruning else ()), OWN]
        self._study = optuna.create_study(
            study_name=name,
            storage=storage,
            sampler=sampler_of(asked, space),
            directions=list(asked.objectives.values()),
            load_if_exists=True,
        )
        self.study_id = storage.get_study_id_from_name(name)

    @property
    def asked(self) -> ExploreFile:
        """The file's content."""
        return self.question.asked

    def known(self) -> list[Known]:
        """All trials that count, in order of their numbers."""
        found = []
        for trial in self._study.get_trials(deepcopy=False)[: self._trials]:
            if (known := self._finished.get(trial.number)) is None:
                known = Known.of(trial, list(self.asked.parameters))
                if known.is_finished:
                    self._finished[trial.number] = known
            found.append(known)
        return found

    def choose(self, wanted: int) -> None:
        """Choose new trials if they are due, a batch at a time, before one of them runs.

        Args:
            wanted: So many should be there to run. Samplers that learn choose when all trials
                before are finished.
        """
        if not self._must_choose(self.known(), wanted):
            return
        with self.claims.choosing(self.study_id):
            while self._must_choose(known := self.known(), wanted):
                for trial in known:
                    if trial.is_torn:
                        self._suggest(self._trial(trial.number))
                if not self._is_amid_choice(known):
                    self._study.set_user_attr(_CHOSEN, self._batch_end(len(known)))
                for _ in range(len(known), min(self._chosen, self._trials)):
                    self._suggest(self._study.ask())

    def due(self, known: Sequence[Known]) -> Iterator[Due]:
        """What is next of each trial, as far as it does not wait for others."""
        if self._is_amid_choice(known):
            return
        firsts: dict[str, Known] = {}
        for trial in known:
            firsts.setdefault(trial.place, trial)
        for trial in known:
            first = firsts[trial.place]
            if trial.is_finished:
                continue
            if first is trial:
                yield from self._next(trial, firsts.values())
            elif first.is_finished:
                yield Due(trial.number, None, first.state, first.why, first.number)
        if self._are_finished(known):
            done = self.confirmed()
            for number in self._to_confirm(known):
                if number not in done:
                    yield Due(number, self.asked.confirm, confirms=True)

    def is_over(self, known: Sequence[Known]) -> bool:
        """Whether nothing is left to do."""
        return self._are_finished(known) and {*self._to_confirm(known)} <= {*self.confirmed()}

    def best(self, known: Sequence[Known]) -> dict[int, list[int]]:
        """Trials than which none is better, and with each those that are as good: `front`."""
        if not self._best:
            complete = [each for each in known if each.state == TrialState.COMPLETE]
            found = {e.number: e.figures for e in complete if e.copied_from is None}
            self._best = front(self.asked, found)
        return self._best

    def keep(self, due: Due, answer: Answer) -> None:
        """Note what a trial gave at a level.

        Raises:
            InputError: if a figure that the file names is none of the command's.
        """
        try:
            self._hold_figures(answer)
        except InputError as error:
            if not due.confirms:
                raise
            answer = Answer(problem=str(error))
        if due.confirms:
            self._study.set_user_attr(f"{self._confirmed}{due.number}", answer.model_dump())
        else:
            name = f"{_ANSWER}{due.level}"
            self._trial(due.number).set_user_attr(name, answer.model_dump())

    def _hold_figures(self, answer: Answer) -> None:
        if answer.problem is None:
            for table in ("objectives", "constraints"):
                for path in getattr(self.asked, table):
                    hold_figure(answer.figures, path, f"{self.question.file}: {table}")

    def finish(self, due: Due, known: Sequence[Known]) -> None:
        """Note how a trial ended."""
        trial, values = self._trial(due.number), None
        source = known[due.number if due.copied_from is None else due.copied_from]
        if due.copied_from is not None:
            trial.set_user_attr(_COPIED, due.copied_from)
            for level, answer in source.answers.items():
                trial.set_user_attr(f"{_ANSWER}{level}", answer.model_dump())
        if due.why is not None:
            trial.set_user_attr(_WHY, due.why)
        if due.state == TrialState.COMPLETE:
            values = [float(source.figures[path] or 0) for path in self.asked.objectives]
            for path, bound in self.asked.constraints.items():
                if path not in trial.constraints:
                    trial.set_constraint(path, bound.excess(source.figures[path] or 0))
        self._study.tell(due.number, values, due.state)

    def confirmed(self) -> dict[int, Answer]:
        """What the best gave at the level of the confirmation, by trial."""
        return {
            int(name.removeprefix(self._confirmed)): Answer.model_validate(each)
            for name, each in self._study.user_attrs.items()
            if name.startswith(self._confirmed)
        }

    def _next(self, trial: Known, firsts: Iterable[Known]) -> Iterator[Due]:
        """The next level of a trial, or its end; nothing while it waits for others."""
        for number, level in enumerate(self._levels):
            if number and (before := self._levels[number - 1]):
                rivals = [each for each in firsts if each.number < self._batch_end(trial.number)]
                if not all(each.is_finished or before in each.answers for each in rivals):
                    return
                there = [e.answers[before] for e in rivals if before in e.answers]
                others = [each.figures for each in there if each.problem is None]
                if is_pruned(self.asked, trial.answers[before].figures, others):
                    yield Due(trial.number, None, TrialState.PRUNED, f"not good enough at {before}")
                    return
            if level not in trial.answers:
                yield Due(trial.number, level)
                return
            if (why := self._fault(trial.answers[level])) is not None:
                yield Due(trial.number, None, TrialState.FAIL, why)
                return
        yield Due(trial.number, None, TrialState.COMPLETE)

    def _fault(self, answer: Answer) -> str | None:
        """Why an answer is none; None: it is one."""
        if answer.problem is not None:
            return answer.problem
        empty = [path for path in self.asked.asked_figures if answer.figures[path] is None]
        return f"{empty[0]}: found null; the run has no such figure" if empty else None

    def _to_confirm(self, known: Sequence[Known]) -> list[int]:
        return [] if self.asked.confirm in (None, NONE) else list(self.best(known))

    def _are_finished(self, known: Sequence[Known]) -> bool:
        return len(known) >= self._trials and all(each.is_finished for each in known)

    def _must_choose(self, known: Sequence[Known], wanted: int) -> bool:
        if self._is_amid_choice(known):
            return True
        left = sum(not each.is_finished for each in known)
        is_due = left == 0 if learns(self.asked) else left < wanted
        return is_due and len(known) < self._trials

    def _is_amid_choice(self, known: Sequence[Known]) -> bool:
        """Whether a batch is being chosen, or was as a run died."""
        short = len(known) < min(self._chosen, self._trials)
        return short or any(each.is_torn for each in known)

    @property
    def _chosen(self) -> int:
        """So many trials there are when the batch is chosen."""
        return int(self._study.user_attrs.get(_CHOSEN, 0))

    def _batch_end(self, number: int) -> int:
        batch = self.asked.batch
        return min(self._trials, batch * (number // batch + 1))

    @property
    def _confirmed(self) -> str:
        return f"{_CONFIRMED}{self.asked.confirm}:"

    def _suggest(self, trial: optuna.Trial) -> None:
        for axis in self._space.axes:
            axis.suggest(trial)

    def _trial(self, number: int) -> optuna.Trial:
        found = self._storage.get_trial_id_from_study_id_trial_number(self.study_id, number)
        return optuna.Trial(self._study, found)
