"""What a budget of accuracy buys, at any door: the plan of the loosest limit that data or an evaluation bears."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tqdm import tqdm

from softneuro import _C
from softneuro.budget import LEVELS, Budget, Search, State, Trial, spend

log = logging.getLogger("softneuro.budget")

_PROOF_EVERY = 4  # of so many batches one proves what the others chose
_MOST_PROOF_BYTES = 256 << 20
_ATTEMPTS = 6  # at a limit that the proof bears
_MARGIN = 0.9  # of the limit, where a plan has erred by more than was foretold


@dataclass(frozen=True)
class Calibration:
    """A file of ranges: the option `calibration` takes its path."""

    path: str
    batches: int
    regions: int


@dataclass(frozen=True)
class Tuned:
    """What a budget has bought."""

    chosen: Trial
    trials: tuple[Trial, ...]  # all that were looked at, the loosest limits first
    calibration: str  # path of the ranges
    options: dict[str, str]  # which make the same choice again

    @property
    def front(self) -> list[Trial]:
        """Of the trials those that no other is better than in time, error and memory."""
        trials = [trial for trial in _each_once(self.trials) if not trial.refused]
        return [one for one in trials if not any(_is_better(other, one) for other in trials)]

    def __str__(self) -> str:
        lines = ["  limit      time      error    memory     score      drop (95 %)"]
        for trial in _each_once(self.trials):
            score = "" if trial.score is None else f"{trial.score:9.4f} {trial.drop:9.4f}"
            if trial.interval is not None:
                score += f" ({trial.interval[0]:+.4f} to {trial.interval[1]:+.4f})"
            mark = "*" if trial.plan == self.chosen.plan else " "
            lines.append(
                f"{mark} {trial.limit:<7.3g} {1e3 * trial.seconds:7.3f} ms {trial.error:9.2e} "
                f"{trial.memory / 2**20:6.1f} MiB {score}"
            )
        return "\n".join(lines)


def _each_once(trials: Iterable[Trial]) -> list[Trial]:
    """Several limits may have one plan: the first of them, or the one that was evaluated."""
    found: dict[str, Trial] = {}
    for trial in trials:
        if trial.plan not in found or (found[trial.plan].score is None and trial.score is not None):
            found[trial.plan] = trial
    return list(found.values())


def _is_better(a: Trial, b: Trial) -> bool:
    pairs = [(a.seconds, b.seconds), (a.error, b.error), (a.memory, b.memory)]
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


class Tuning(Protocol):
    """A model that is tuned under a budget."""

    def apply(self, limit: float) -> Trial:
        """Has the model run the plan of a limit on the relative error; 0: floats."""

    def note(self, trial: Trial) -> None:
        """Keeps what is known of a trial by now."""


class Sized(Protocol):
    """A batch."""

    def bytes(self) -> int:
        """Of its tensors."""


B = TypeVar("B", bound=Sized)


class Proof(Generic[B]):
    """Batches that choose nothing, to prove what the others have chosen."""

    def __init__(self) -> None:
        self.batches: list[B] = []

    def others(self, batches: Iterable[B]) -> Iterator[B]:
        """All but those that are held back: every fourth, as far as memory is to be had."""
        size, last = 0, None
        for number, batch in enumerate(batches):
            last = batch
            if number % _PROOF_EVERY == _PROOF_EVERY - 1 and size + batch.bytes() <= _MOST_PROOF_BYTES:
                self.batches.append(batch)
                size += batch.bytes()
            else:
                yield batch
        if not self.batches and last is not None:
            log.warning("tune: there are too few batches to hold any back: errors are proven on one that chose")
            self.batches.append(last)


def within_error(tuning: Tuning, limit: float) -> Trial:
    """The plan of the loosest limit, at most this one, whose outputs on held-back data err no more than this one."""
    wanted = limit
    for _ in range(_ATTEMPTS):
        trial = tuning.apply(wanted)
        if trial.error <= limit and not trial.refused:
            return trial
        found = "more where it is compared with the host" if trial.refused else f"{trial.error:.2e} on data held back"
        log.info("tune: a plan for %.2e errs by %s", wanted, found)
        share = _MARGIN * limit / trial.error if trial.error > limit else 1.0  # the host's error tells nothing
        wanted *= max(min(share, 0.8), 0.05)
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
            if trial.plan not in known and search.left() > 0 and not trial.refused:
                known.add(trial.plan)
                judged.append(search.judge(tuning.apply(trial.limit)))
    for trial in judged:
        tuning.note(trial)
    if best is None:
        log.warning("tune: no plan of bytes keeps within the allowed drop: floats run")
        return tuning.apply(0.0)
    tuning.apply(best.limit)
    return best


def check_budget(budget: Budget, evaluate: Callable[..., Any] | None) -> None:
    """Raises Error if there is nothing that the budget's limit can be held against."""
    if (budget.max_error is None) == (evaluate is None):
        raise _C.Error("max_error is held against outputs, max_drop against what evaluate() returns: give both")


def buy(
    tuning: Tuning,
    budget: Budget,
    *,
    evaluate: Callable[[], Any] | None,
    most: int,
    pareto: bool,
    state: str | os.PathLike[str] | None,
    ranges: str,
) -> Trial:
    """The plan that the budget bears, which the model runs from here on.

    Args:
        tuning: what has learnt from data.
        budget: what is borne.
        evaluate: the score of the model as it runs; None where the budget is an error.
        most: evaluations.
        pareto: whether plans are tried that decide nothing, too.
        state: see `State`.
        ranges: the file of ranges, by whose content evaluations are told apart.
    """
    if evaluate is None:
        assert budget.max_error is not None
        if pareto:
            for level in LEVELS:
                tuning.apply(level)
        return within_error(tuning, budget.max_error)
    shown = tqdm(total=most, desc="softneuro: evaluations, at most", leave=False, disable=None)

    def progress(made: int, of: int) -> None:
        shown.update(made - shown.n)

    try:
        search = Search(budget, evaluate, State(state, f"{tuning.apply(0.0).plan} {_hash_of(ranges)}"), most, progress)
        log.info("tune: at most %d evaluations, that of floats included, which is repeated once", most)
        return within_drop(tuning, search, pareto, lambda done, of: None)
    finally:
        shown.close()


def _hash_of(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def by_content(path: str) -> str:
    """The path of a file once it is named by what it has: what others write does not change it."""
    name = Path(path)
    target = name.with_name(f"{name.stem}-{_hash_of(path)}{name.suffix}")
    os.replace(name, target)
    return str(target)


def default_path() -> str:
    """Where ranges are observed for which the user names no file: a new one; see by_content()."""
    directory = _C.CostDb.default_directory()
    if directory:
        return os.path.join(directory, f"ranges-{os.getpid()}-{threading.get_ident()}.txt")
    return os.path.join(tempfile.mkdtemp(prefix="softneuro-"), "ranges.txt")
