"""Searches for the loosest limit that an evaluation bears: scores, repeats, what is told ahead, what is refused."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from softneuro import _C, tuned
from softneuro.budget import LEVELS, Budget, Trial

Told = pytest.LogCaptureFixture


class Model:
    """One whose plans' errors are half of their limits; limits of one decade have one plan."""

    def __init__(self, refused: float = 1.0) -> None:
        self.refused = refused  # above this limit the host runs
        self.limit = -1.0
        self.noted: list[Trial] = []

    def apply(self, limit: float) -> Trial:
        self.limit = limit
        plan = f"{limit:.0e}"
        if limit > self.refused:
            return Trial(limit=limit, plan=f"host {plan}", seconds=9.0, error=0.0, memory=0.0, refused=True)
        return Trial(limit=limit, plan=plan, seconds=1 / (1 + limit), error=limit / 2, memory=1.0)

    def note(self, trial: Trial) -> None:
        self.noted.append(trial)


@pytest.fixture
def ranges(tmp_path: Path) -> str:
    path = tmp_path / "ranges.txt"
    path.write_text("ranges\n")
    return str(path)


def buy(model: Model, evaluate: Callable[[], Any], ranges: str, drop: float = 0.1, **given: Any) -> Trial:
    options: dict[str, Any] = {"most": 8, "pareto": False, "state": None, **given}
    return tuned.buy(model, Budget(max_drop=drop), evaluate=evaluate, ranges=ranges, **options)


def test_the_host_in_place_of_a_plan_is_no_plan_within_the_limit(ranges: str) -> None:
    model = Model(refused=0.015)
    found = tuned.within_error(model, 0.02)
    assert not found.refused
    assert 0.01 < found.limit == model.limit <= 0.015
    found = tuned.within_error(Model(refused=1e-5), 0.02)
    assert found.limit == 0


def test_the_host_in_place_of_a_plan_is_not_evaluated(ranges: str) -> None:
    model, seen = Model(refused=0.015), []

    def evaluate() -> float:
        seen.append(model.limit)
        return 1 - model.limit

    best = buy(model, evaluate, ranges, pareto=True)
    assert not best.refused
    assert 0 < best.limit <= 0.015
    assert max(seen) <= 0.015


def test_the_loosest_limit_is_found_in_few_evaluations(ranges: str) -> None:
    model, seen = Model(), []

    def evaluate() -> float:
        seen.append(model.limit)
        return 1 - model.limit

    best = buy(model, evaluate, ranges)
    assert best.passed
    assert 0.08 < best.limit <= 0.1
    assert model.limit == best.limit
    assert len(seen) <= 8
    assert seen[:2] == [0.0, 0.0]  # floats are evaluated once more, to see whether scores are the same
    assert len(set(seen[1:])) == len(seen[1:])


@pytest.mark.parametrize("most", [2, 3, 5])
def test_no_more_evaluations_than_allowed(most: int, ranges: str) -> None:
    model, seen = Model(), []

    def evaluate() -> float:
        seen.append(model.limit)
        return 1.0

    buy(model, evaluate, ranges, most=most, pareto=True)
    assert len(seen) == most
    assert seen.count(0.0) == min(most - 1, 2)


@pytest.mark.parametrize(
    ("scores", "told"),
    [((0.9, 0.87), "0.03"), (([1.0, 0.1], [1.0, 0.6]), "0.25"), (([0.9, 0.1], [0.1, 0.9]), "below 0.8 can be told")],
)
def test_scores_that_change_are_told(scores: Sequence[Any], told: str, ranges: str, caplog: Told) -> None:
    given = iter(scores)
    with caplog.at_level(logging.WARNING):
        buy(Model(), lambda: next(given, scores[0]), ranges)
    assert "not deterministic" in caplog.text
    assert told in caplog.text


def test_scores_that_stay_are_not_told(ranges: str, caplog: Told) -> None:
    given = iter([0.9, 0.9 + 1e-13])
    with caplog.at_level(logging.WARNING):
        buy(Model(), lambda: next(given, 0.9), ranges)
    assert "deterministic" not in caplog.text


def test_how_many_and_how_long_is_told_ahead(ranges: str, caplog: Told) -> None:
    model, lines = Model(), []

    def evaluate() -> float:
        lines.append([record.getMessage() for record in caplog.records])
        return 1.0 if model.limit < 0.02 else 0.0

    with caplog.at_level(logging.INFO, logger="softneuro.budget"):
        buy(model, evaluate, ranges, most=6)
    assert "at most 6 evaluations" in lines[0][-1]
    assert "1 of at most 6 evaluations; the others take up to" in lines[1][-1]


def test_the_bar_counts_evaluations(ranges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Bar:
        def __init__(self, **given: Any) -> None:
            self.given, self.n, self.closed = given, 0, False
            made.append(self)

        def update(self, more: int) -> None:
            self.n += more

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(tuned, "tqdm", Bar)
    with pytest.raises(ZeroDivisionError):
        buy(Model(), lambda: 1 / 0, ranges)
    model = Model()
    buy(model, lambda: 1 - model.limit, ranges, most=5)
    assert [bar.closed for bar in made] == [True, True]
    assert [bar.given["total"] for bar in made] == [8, 5]
    assert made[1].n == 5


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (math.nan, "returned nan"),
        ([1.0, math.nan], "nan for sample 1"),
        ([1.0, math.inf], "inf for sample 1"),
        (None, "no number"),
        ("0.9", None),
        ([[1.0], [2.0]], "not one of numbers"),
        ([], "no samples"),
    ],
)
def test_what_is_no_score(score: Any, message: str | None, ranges: str) -> None:
    if message is None:
        assert buy(Model(), lambda: score, ranges).score == 0.9
        return
    with pytest.raises(_C.Error, match=message):
        buy(Model(), lambda: score, ranges)


@pytest.mark.parametrize("other", [[1.0, 1.0], 1.0])
def test_other_samples_are_refused(other: Any, ranges: str) -> None:
    model = Model()
    with pytest.raises(_C.Error, match=r"3 by sample for floats, and (2|a single score)"):
        buy(model, lambda: [0.9] * 3 if model.limit == 0 else other, ranges)
    with pytest.raises(_C.Error, match="a single score, not one by sample for floats, and 3"):
        buy(model, lambda: 0.9 if model.limit == 0 else [0.9] * 3, ranges)


def test_an_evaluation_that_raises_is_counted_in_the_log(ranges: str, caplog: Told) -> None:
    model = Model()
    with pytest.raises(ZeroDivisionError), caplog.at_level(logging.WARNING):
        buy(model, lambda: 1.0 if model.limit == 0 else 1 / 0, ranges, most=4)
    assert "evaluation 3 of at most 4 failed: ZeroDivisionError" in caplog.text
    with pytest.raises(KeyError), caplog.at_level(logging.WARNING):
        buy(model, lambda: {}["answer"], ranges)
    assert "evaluation 1 of at most 8 failed: KeyError" in caplog.text


def test_a_search_goes_on_where_it_was(ranges: str, tmp_path: Path) -> None:
    model, state, calls = Model(), tmp_path / "state.json", []

    def evaluate() -> list[float]:
        calls.append(model.limit)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return [0.9 - model.limit] * 3

    with pytest.raises(KeyboardInterrupt):
        buy(model, evaluate, ranges, state=state)
    assert len(json.loads(state.read_text())["evaluations"]) == 3
    best = buy(model, evaluate, ranges, state=state)
    assert best.interval is not None
    assert calls.count(0.0) == 2
    assert calls.count(calls[2]) == 1


def test_levels_are_loosest_first() -> None:
    assert list(LEVELS) == sorted(LEVELS, reverse=True)
