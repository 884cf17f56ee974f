"""The fastest plan that the user's budget bears, proven on data."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.utils._pytree as pytree

import softneuro
from softneuro.budget import Budget, Trial
from softneuro.error_measure import relative_error
from softneuro.option_texts import in_floats
from softneuro.torch_backend.budgets.batches import Batch, batches_of
from softneuro.torch_backend.budgets.calibrate import is_finite, observe
from softneuro.torch_backend.budgets.regions import Regions, for_these_shapes, regions_of
from softneuro.tuned import Proof, Tuned, buy, by_content, check_budget, default_path

log = logging.getLogger("softneuro.torch_backend")
_SETTLED = ("min_region_size", "host", "shortcuts")  # when a model is compiled
_one_at_a_time = threading.Lock()  # as calls that are observed are the model's, whoever makes them


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
        proof: Proof[Batch] = Proof()
        observe(self.regions, proof.others(batches), self.path, method)
        self._proof = [batch for batch in proof.batches if is_finite(batch)]
        if not self._proof:
            raise softneuro.Error("what was held back has NaN or infinities: there is nothing to prove a plan on")
        self.regions.change(**self._floats())
        with for_these_shapes():
            self._truths = [self._outputs(self.regions.run(batch)) for batch in self._proof]

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
            seconds=self.regions.seconds(),
            error=error,
            memory=sum(plan.memory["packed"] for plan in plans),
            refused=self.regions.refuse(limit),
        )
        return self._tried[limit]

    def has_reals(self) -> bool:
        """Whether any output has an error."""
        return any(bool(truth) for truth in self._truths)

    def options_of(self, limit: float) -> dict[str, str]:
        """Options that make the plans of a limit."""
        return {**self._options, **self._bytes(limit)} if limit > 0 else self._floats()

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
        return {**in_floats(self._options), "calibration": ""}

    @staticmethod
    def _outputs(results: Any) -> list[torch.Tensor]:
        leaves = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
        return [leaf.detach().clone() for leaf in leaves if leaf.is_floating_point()]


def _error(results: Sequence[torch.Tensor], truths: Sequence[torch.Tensor]) -> float:
    pairs = zip(results, truths, strict=True)
    return max((relative_error(a.float().numpy(), b.float().numpy()) for a, b in pairs), default=0.0)


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
    check_budget(budget, evaluate)
    for name in _SETTLED:
        if name in options:
            raise softneuro.Error(
                f"{name} is settled when a model is compiled: give it to torch.compile(..., options={{...}}) instead"
            )
    with _one_at_a_time:
        known = regions_of.get(model)
        before = known.changes if known is not None else {}
        tuning = Tuning(model, os.fspath(calibration) if calibration is not None else default_path(), options)
        regions_of[model] = tuning.regions
        done = False
        try:
            tuning.learn(batches_of(model, data, num_batches, transform), method)
            if calibration is None:
                tuning.path = by_content(tuning.path)
            if evaluate is None and not tuning.has_reals():
                raise softneuro.Error("no output is a tensor of reals: give evaluate= and max_drop=, not max_error=")
            score = _score(tuning, evaluate)
            chosen = buy(
                tuning, budget, evaluate=score, most=max_evaluations, pareto=pareto, state=state, ranges=tuning.path
            )
            done = True
        finally:
            if not done:
                tuning.regions.change(**before)
        if not tuning.regions.rounds():
            log.warning("tune: no plan with bytes is faster and keeps to the budget: floats run")
    return Tuned(chosen, tuple(tuning.tried()), tuning.path, tuning.options_of(chosen.limit))


def _score(tuning: Tuning, evaluate: Callable[[Any], Any] | None) -> Callable[[], Any] | None:
    if evaluate is None:
        return None

    def score() -> Any:
        with for_these_shapes(), torch.no_grad():
            return evaluate(tuning.regions.model)

    return score
