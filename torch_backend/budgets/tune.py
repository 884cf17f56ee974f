"""The fastest plan that the user's budget bears, proven on data."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.utils._pytree as pytree
from tqdm import tqdm

import softneuro
from softneuro.budget import LEVELS, Budget, Search, State, Trial, spend
from softneuro.error_measure import relative_error
from softneuro.torch_backend.budgets.batches import Batch, batches_of
from softneuro.torch_backend.budgets.calibrate import default_path, observe
from softneuro.torch_backend.budgets.regions import Regions, for_these_shapes, regions_of

log = logging.getLogger("softneuro.torch_backend")

_PROOF_EVERY = 4  # of so many batches one proves what the others chose
_MOST_PROOF_BYTES = 256 << 20
_ATTEMPTS = 6  # at a limit that the proof bears
_MARGIN = 0.9  # of the limit, where a plan has erred by more than was foretold


@dataclass(frozen=True)
class Tuned:
    """What a budget has bought. The model runs it already."""

    chosen: Trial
    trials: tuple[Trial, ...]  # all that were looked at, the loosest limits first
    calibration: str  # path of the ranges
    options: dict[str, str]  # which make torch.compile() choose the same

    @property
    def front(self) -> list[Trial]:
        """Of the trials those that no other is better than in time, error and memory."""
        worse = lambda a, b: (  # noqa: E731
            b is not a
            and b.seconds <= a.seconds
            and b.error <= a.error
            and b.memory <= a.memory
            and (b.seconds, b.error, b.memory) != (a.seconds, a.error, a.memory)
        )
        return [a for a in self.trials if not any(worse(a, b) for b in self.trials)]

    def __str__(self) -> str:
        lines = ["  limit      time      error    memory     score      drop (95 %)"]
        for trial in self.trials:
            score = "" if trial.score is None else f"{trial.score:9.4f} {trial.drop:9.4f}"
            if trial.interval is not None:
                score += f" ({trial.interval[0]:+.4f} to {trial.interval[1]:+.4f})"
            mark = "*" if trial.plan == self.chosen.plan else " "
            lines.append(
                f"{mark} {trial.limit:<7.3g} {1e3 * trial.seconds:7.3f} ms {trial.error:9.2e} "
                f"{trial.memory / 2**20:6.1f} MiB {score}"
            )
        return "\n".join(lines)


class Tuning:
    """A model that is tuned under a budget: regions, the host's truth on held-back batches, and what was tried."""

    def __init__(self, model: Any, path: str, options: dict[str, str]) -> None:
        self.regions = Regions(model)
        self.path = path
        self._options = options
        self._proof: list[Batch] = []
        self._truths: list[list[torch.Tensor]] = []
        self._tried: dict[float, Trial] = {}
        self._now: float | None = None  # the limit that runs

    def learn(self, batches: Iterable[Batch], method: str) -> None:
        """Calibrates with most of the batches, and keeps the others for proof."""
        held, size = self._proof, 0

        def most() -> Iterable[Batch]:
            nonlocal size
            last = None
            for number, batch in enumerate(batches):
                last = batch
                if number % _PROOF_EVERY == _PROOF_EVERY - 1 and size + batch.bytes() <= _MOST_PROOF_BYTES:
                    held.append(batch)
                    size += batch.bytes()
                else:
                    yield batch
            if not held and last is not None:
                log.warning("tune: there are too few batches to hold any back: errors are proven on one that chose")
                held.append(last)

        observe(self.regions, most(), self.path, method)
        self.regions.change(**self._floats())
        with for_these_shapes():
            self._truths = [self._outputs(self.regions.run(batch)) for batch in held]

    def apply(self, limit: float) -> Trial:
        """Has the model run the plan of a limit on the relative error; 0: floats."""
        if self._now != limit:
            self._change(limit)
            self._now = limit
        if limit in self._tried:
            with for_these_shapes():
                self.regions.run(self._proof[0])
            return self._tried[limit]
        with for_these_shapes():
            results = [self._outputs(self.regions.run(batch)) for batch in self._proof]
        error = max(_error(result, truth) for result, truth in zip(results, self._truths, strict=True))
        plans = self.regions.plans()
        self._tried[limit] = Trial(
            limit=limit,
            plan=self.regions.names(),
            seconds=sum(plan.predicted_s for plan in plans),
            error=error,
            memory=sum(plan.memory["packed"] for plan in plans),
        )
        return self._tried[limit]

    def options_of(self, limit: float) -> dict[str, str]:
        """Options that make the plans of a limit."""
        return {**self._options, **(self._bytes(limit) if limit > 0 else self._floats())}

    def tried(self) -> list[Trial]:
        """Each plan once, by its tightest limit, the loosest first."""
        plans: dict[str, Trial] = {}
        for limit in sorted(self._tried):
            trial = self._tried[limit]
            known = plans.setdefault(trial.plan, trial)
            if known.score is None and trial.score is not None:
                plans[trial.plan] = replace(trial, limit=known.limit)
        return sorted(plans.values(), key=lambda trial: trial.limit, reverse=True)

    def note(self, trial: Trial) -> None:
        """Keeps what is known of a trial by now."""
        self._tried[trial.limit] = trial

    def _change(self, limit: float) -> None:
        self.regions.change(**self.options_of(limit))

    def _bytes(self, limit: float) -> dict[str, str]:
        return {"calibration": self.path, "max_error": repr(limit)}

    def _floats(self) -> dict[str, str]:
        return {**self._options, "calibration": ""}

    @staticmethod
    def _outputs(results: Any) -> list[torch.Tensor]:
        leaves = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
        return [leaf.detach().clone() for leaf in leaves if leaf.is_floating_point()]


def _error(results: Sequence[torch.Tensor], truths: Sequence[torch.Tensor]) -> float:
    pairs = zip(results, truths, strict=True)
    return max((relative_error(a.float().numpy(), b.float().numpy()) for a, b in pairs), default=0.0)


def within_error(tuning: Tuning, limit: float) -> Trial:
    """The plan of the loosest limit, at most this one, whose outputs on held-back data err no more than this one."""
    wanted = limit
    for _ in range(_ATTEMPTS):
        trial = tuning.apply(wanted)
        if trial.error <= limit:
            return trial
        log.info("tune: a plan for %.2e errs by %.2e on data that was held back", wanted, trial.error)
        wanted *= min(_MARGIN * limit / trial.error, 0.8)
    log.warning("tune: no plan keeps to max_error=%g on data that was held back: floats run", limit)
    return tuning.apply(0.0)


def within_drop(tuning: Tuning, search: Search, pareto: bool, bar: Callable[[int, int], None]) -> Trial:
    """The fastest plan whose score the budget bears."""
    floats = tuning.apply(0.0)
    search.begin(floats.plan)
    assert search.floats is not None
    tuning.note(replace(floats, score=search.floats.mean, drop=0.0, passed=True))
    levels = []
    for index, level in enumerate(LEVELS):
        levels.append(tuning.apply(level))
        bar(index + 1, len(LEVELS))
    best, judged = spend(levels, tuning.apply, search)
    if pareto:
        known = {trial.plan for trial in judged}
        for trial in levels:
            if trial.plan not in known and search.left() > 0:
                known.add(trial.plan)
                judged.append(search.judge(tuning.apply(trial.limit)))
    for trial in judged:
        tuning.note(trial)
    if best is None:
        log.warning("tune: no plan of bytes keeps within the allowed drop: floats run")
        return tuning.apply(0.0)
    tuning.apply(best.limit)
    return best


def tune_within(
    model: Any,
    data: Iterable[Any],
    budget: Budget,
    *,
    evaluate: Callable[[Any], Any] | None,
    num_batches: int,
    transform: Callable[[Any], Any] | None,
    method: str,
    max_evaluations: int,
    pareto: bool,
    state: str | os.PathLike[str] | None,
    calibration: str | os.PathLike[str] | None,
    options: dict[str, str],
) -> Tuned:
    """See `softneuro.torch_backend.tune`."""
    if (budget.max_error is None) == (evaluate is None):
        raise softneuro.Error("max_error is held against outputs, max_drop against what evaluate() returns: give both")
    path = os.fspath(calibration) if calibration is not None else default_path()
    tuning = Tuning(model, path, options)
    regions_of[model] = tuning.regions
    done = False
    try:
        tuning.learn(batches_of(model, data, num_batches, transform), method)
        if evaluate is None:
            assert budget.max_error is not None
            if pareto:
                for level in LEVELS:
                    tuning.apply(level)
            chosen = within_error(tuning, budget.max_error)
        else:
            chosen = _by_score(tuning, budget, evaluate, max_evaluations, pareto, state)
        done = True
    finally:
        if not done:
            tuning.regions.change()
    return Tuned(chosen, tuple(tuning.tried()), path, tuning.options_of(chosen.limit))


def _by_score(
    tuning: Tuning,
    budget: Budget,
    evaluate: Callable[[Any], Any],
    most: int,
    pareto: bool,
    state: str | os.PathLike[str] | None,
) -> Trial:
    model = tuning.regions.model
    shown = tqdm(total=most, desc="softneuro: evaluations", leave=False, disable=None)

    def progress(made: int, of: int) -> None:
        shown.update(made - shown.n)

    def score() -> Any:
        with torch.no_grad():
            return evaluate(model)

    search = Search(budget, score, State(state, tuning.apply(0.0).plan), most, progress)
    log.info("tune: at most %d evaluations", most)
    try:
        return within_drop(tuning, search, pareto, lambda done, of: None)
    finally:
        shown.close()
