"""What errs by more than a small share of max_error: measured, and chosen where its net is known to bear it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import costs, records
from tests.tune.test_accuracy import convolutions, descriptors

BEST = softneuro.available_isas()[0]
ATTRS = {"padding": [1, 1, 1, 1]}
WEIGHTS = {"weight": np.ones((64, 64, 3, 3), np.float32)}


def errors(size: int) -> dict[int, float]:
    """Expected ones of a convolution by Winograd, by tile."""
    arguments = ("conv2d", ATTRS, WEIGHTS, [(1, 64, size, size)])
    accepted = [d for d in _C.testing.accepting(*arguments) if f"/winograd_{BEST}{{" in d]
    return {int(re.findall(r"tile=(\d)", d)[0]): _C.testing.expected_error(*arguments, d) for d in accepted}


def tile(size: int) -> str:
    """A pattern for Winograd's routines of it."""
    return re.escape(f"/winograd_{BEST}{{tile={size},")


ERRORS = errors(40)
TILES = sorted(ERRORS.keys() & errors(48).keys(), key=lambda size: ERRORS[size])
ERROR = ERRORS[TILES[-1]]  # of the most inexact
OPTIONS = {"max_memory": "100", "max_error": str(5 * ERROR)}  # which a net of two layers keeps to, and its half


def copy(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, favourite: str = "") -> None:
    """Routines' own costs, where the favourites are fastest by far."""
    entries = costs(source)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(target))
    for cost in entries:
        if "graph" not in cost.signature:
            cost.make_up(1e-9 if favourite and re.search(favourite, cost.descriptor) else cost.seconds)


def known_errors(folder: Path, monkeypatch: pytest.MonkeyPatch, favourite: str) -> None:
    """A database with errors of nets and no times of theirs, so that the routines' own times decide."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(folder / "real"))
    _C.tune(convolutions(), _C.parse_options(OPTIONS), 1)
    copy(folder / "real", folder / "unknown", monkeypatch, favourite)
    _C.tune(convolutions(), _C.parse_options(OPTIONS), 1)
    copy(folder / "unknown", folder / "known", monkeypatch)
    for kind, key, fields in records(folder / "unknown", "error"):
        _C.CostDb().put(kind, key, fields)


def test_candidates_alone_keep_to_max_error() -> None:
    """One whose error is just below it is a candidate, one whose error is just above is not."""
    graph = softneuro.Graph()
    graph.output(graph.add("conv2d", [graph.input("x", (1, 64, 40, 40))], weights=WEIGHTS, **ATTRS))
    error = max(ERRORS.values())
    within, beyond = (
        _C.tune(graph, _C.parse_options({"tune": "off", "max_error": str(share * error)}), 1).counts["candidates"]
        for share in (1.001, 0.999)
    )
    assert within > beyond


def test_what_is_inexact_is_chosen_where_its_net_bears_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_errors(tmp_path, monkeypatch, tile(TILES[-1]))
    plan = _C.tune(convolutions(), _C.parse_options({**OPTIONS, "tune": "cached"}), 1)
    assert re.search(tile(TILES[-1]), descriptors(plan))
    # Where nothing is known of the net's error, it is not for guesses to take that much.
    copy(tmp_path / "known", tmp_path / "again", monkeypatch)
    for mode in ("off", "cached"):
        plan = _C.tune(convolutions(), _C.parse_options({**OPTIONS, "tune": mode}), 1)
        assert not re.search(tile(TILES[-1]), descriptors(plan))


def larger() -> softneuro.Graph:
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 64, 48, 48))
    for _ in range(2):
        weights = {"weight": rng.standard_normal((64, 64, 3, 3), dtype=np.float32) / 24}
        blob = graph.add("conv2d", [blob], weights=weights, **ATTRS)
    graph.output(blob)
    return graph


@pytest.mark.parametrize("size", TILES[-2:])
def test_carried_over_is_what_was_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A plan for another shape has a tile where this one has it, whatever blocks there are, and none that errs more."""
    known_errors(tmp_path, monkeypatch, tile(size))
    plan = _C.tune(convolutions(), _C.parse_options({**OPTIONS, "tune": "cached"}), 1)
    for each in (plan, plan.carry_over(larger(), 1)):
        assert len(re.findall(tile(size), descriptors(each))) == 2
