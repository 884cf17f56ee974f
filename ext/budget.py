"""Spends a budget of accuracy: finds the fastest plan that an evaluation bears, in few evaluations.

A door makes a plan for a limit on the outputs' relative error; the user's evaluation says what that error is worth. The
loosest limit that passes is looked for by bisection, as plans of looser limits are faster and less accurate.
"""

from __future__ import annotations

import json
import logging
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softneuro import _C
from softneuro.score import Score, drop_interval

log = logging.getLogger("softneuro.budget")

# Limits on the relative error that are tried, the loosest first.
LEVELS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
_PRECISION = 1.1  # limits whose ratio is below this are the same


@dataclass(frozen=True)
class Trial:
    """A plan as it was tried."""

    limit: float  # on the relative error; 0: floats
    plan: str  # names what was chosen: equal for equal plans
    seconds: float  # of a call, as predicted
    error: float  # relative L2 of the worst output, on data that nothing was chosen by
    memory: float  # bytes of packed weights
    refused: bool = False  # where it erred by more than the limit, the host runs instead
    score: float | None = None  # None: it was not evaluated
    drop: float | None = None  # of the score, from that of floats
    interval: tuple[float, float] | None = None  # of the drop, 95 %, where there are scores by sample
    passed: bool | None = None


@dataclass(frozen=True)
class Budget:
    """What the user bears."""

    max_error: float | None = None  # relative L2 of each output
    max_drop: float | None = None  # of the score
    max_relative_drop: float | None = None  # of the score, as a share of that of floats

    def __post_init__(self) -> None:
        given = [name for name, value in asdict(self).items() if value is not None]
        if len(given) != 1:
            raise _C.Error(f"a budget has one limit, not {len(given)}: give max_error, max_drop or max_relative_drop")
        value = asdict(self)[given[0]]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _C.Error(f"{given[0]}={value!r} is no number")
        if not math.isfinite(value) or value < 0 or (given[0] == "max_error" and value == 0):
            raise _C.Error(f"{given[0]}={value} is out of range; give a finite number above 0 (0 is a drop of nothing)")

    def allowed_drop(self, score: float) -> float:
        """The drop that is borne where floats have this score."""
        if self.max_drop is not None:
            return self.max_drop
        return (self.max_relative_drop or 0.0) * abs(score)


class State:
    """Evaluations that were made, in a file, so that a broken-off search goes on where it was."""

    def __init__(self, path: str | os.PathLike[str] | None, key: str) -> None:
        self._path = Path(path) if path else None
        self._key = key
        self._known: dict[str, Any] = {}
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise _C.Error(f"state={self._path}: there is no folder {self._path.parent}")
        if not self._path.exists():
            return
        if not self._path.is_file():
            raise _C.Error(f"state={self._path} is no file; give another path")
        try:
            text = json.loads(self._path.read_text())
            known = text["evaluations"] if text["key"] == key else {}
            if text["key"] != key:
                log.warning("%s is of other weights or ranges: its evaluations are not used", self._path)
            self._known = {plan: [float(x) for x in scores] for plan, scores in known.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise _C.Error(f"{self._path} is no state of a search: {error}; remove it, or give another path") from None

    def find(self, plan: str) -> Score | None:
        """The score of a plan, if it is known."""
        scores = self._known.get(plan)
        if scores is None:
            return None
        return Score(statistics.fmean(scores), tuple(scores) if len(scores) > 1 else ())

    def add(self, plan: str, score: Score) -> None:
        """Keeps a score. A file that cannot be written costs a warning."""
        self._known[plan] = list(score.samples or (score.mean,))
        if self._path is None:
            return
        temporary: str | None = None
        try:
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, suffix=".tmp", delete=False) as file:
                temporary = file.name
                json.dump({"key": self._key, "evaluations": self._known}, file)
            os.replace(temporary, self._path)
        except OSError as error:
            log.warning("the search's state is not kept: %s", error)
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)


class Search:
    """The evaluations of one search, each plan's once, and no more than are allowed."""

    def __init__(
        self,
        budget: Budget,
        evaluate: Callable[[], Any],
        state: State,
        most: int,
        progress: Callable[[int, int], None],
    ) -> None:
        if most < 2:
            raise _C.Error(f"max_evaluations={most}: floats need one, and every plan that is tried another")
        self._budget, self._evaluate, self._state, self._most = budget, evaluate, state, most
        self._progress = progress
        self._seconds = 0.0  # of the evaluations that were made
        self.made = 0
        self.floats: Score | None = None

    def left(self) -> int:
        """Evaluations that may still be made."""
        return self._most - self.made

    def score(self, plan: str) -> Score:
        """Of the plan that runs now. Raises what the evaluation raises, and Error for what is no score."""
        known = self._state.find(plan)
        if known is not None:
            return known
        self._progress(self.made, self._most)
        self.made += 1
        start = time.monotonic()
        try:
            score = Score.of(self._evaluate())
        except Exception as error:
            log.warning("tune: evaluation %d of at most %d failed: %s", self.made, self._most, type(error).__name__)
            raise
        self._check_samples(score)
        self._seconds += time.monotonic() - start
        left = self._seconds / self.made * self.left()
        log.info("tune: %d of at most %d evaluations; the others take up to %.1f s", self.made, self._most, left)
        self._progress(self.made, self._most)
        self._state.add(plan, score)
        return score

    def _check_samples(self, score: Score) -> None:
        if self.floats is None or len(score.samples) == len(self.floats.samples):
            return
        before, now = (len(one.samples) or "a single score, not one" for one in (self.floats, score))
        raise _C.Error(
            f"evaluate() returned {before} by sample for floats, and {now} by sample later: drops are of the same "
            "samples, each time in the same order; if its data has changed, give another file for state"
        )

    def begin(self, plan: str) -> None:
        """Evaluates floats, twice if another evaluation is left for a plan, and tells if the scores differ.

        Raises Error for a limit below the weight of one sample.
        """
        self.floats = self.score(plan)
        count = len(self.floats.samples)
        allowed = self._budget.allowed_drop(self.floats.mean)
        values = set(self.floats.samples)
        if count and values <= {0.0, 1.0} and 0 < allowed < 1 / count:
            raise _C.Error(
                f"a drop of {allowed:g} is below one of {count} samples ({1 / count:g}): give 0, or at least that"
            )
        if self._most > 2:
            self._repeat(plan)

    def _repeat(self, plan: str) -> None:
        assert self.floats is not None
        again = self.score(f"{plan} again")
        if difference := self.floats.difference(again):
            log.warning(
                "tune: evaluate() is not deterministic: floats scored %.6g, then %.6g; no drop below %.2g can be told",
                self.floats.mean,
                again.mean,
                difference,
            )

    def judge(self, trial: Trial) -> Trial:
        """Evaluates the plan that runs now."""
        assert self.floats is not None
        score = self.score(trial.plan)
        self._check_samples(score)
        drop = self.floats.mean - score.mean
        passed = drop <= self._budget.allowed_drop(self.floats.mean) + 1e-12
        interval = drop_interval(self.floats, score)
        return Trial(**{**asdict(trial), "score": score.mean, "drop": drop, "interval": interval, "passed": passed})


def spend(levels: Sequence[Trial], apply: Callable[[float], Trial], search: Search) -> tuple[Trial | None, list[Trial]]:
    """The loosest plan that passes, and all that was judged.

    Args:
        levels: plans by limit, the loosest first, none evaluated; equal plans are judged once.
        apply: makes the plan of a limit the one that runs.
        search: which has begun.
    """
    judged: dict[str, Trial] = {}

    def passes(limit: float) -> bool:
        trial = apply(limit)
        if not trial.refused and trial.plan not in judged:
            judged[trial.plan] = search.judge(trial)
        return not trial.refused and bool(judged[trial.plan].passed)

    distinct = [t for i, t in enumerate(levels) if i == 0 or t.plan != levels[i - 1].plan]
    low, high = 0, len(distinct)  # the first that passes is in between
    while low < high and search.left() > 0:
        middle = (low + high) // 2
        if passes(distinct[middle].limit):
            high = middle
        else:
            low = middle + 1
    good = distinct[high] if high < len(distinct) and distinct[high].plan in judged else None
    if good is not None and high > 0:
        good = _refine(distinct[high - 1].limit, good, passes, apply, search)
    return (judged[good.plan] if good is not None else None), list(judged.values())


def _refine(
    bad: float, good: Trial, passes: Callable[[float], bool], apply: Callable[[float], Trial], search: Search
) -> Trial:
    """Between a limit that fails and one that passes."""
    while search.left() > 0 and bad / good.limit > _PRECISION:
        middle = math.sqrt(bad * good.limit)
        trial = apply(middle)
        if trial.plan != good.plan and not passes(middle):
            bad = middle
        else:
            good = trial
    return good
