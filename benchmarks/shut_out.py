"""Plans that would be best if some routines did not exist."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import softneuro
from softneuro import _C

ROUNDS = 8  # of tuning: with some shut out, others may be measured for the first time
SPARSE = {entry["descriptor"] for entry in softneuro.registry() if entry["exploits_sparsity"]}
T = TypeVar("T")


def is_sparse(descriptor: str) -> bool:
    """Whether the routine makes use of zeros in weights."""
    return descriptor.partition("{")[0] in SPARSE


def is_pair(descriptor: str) -> bool:
    """Whether the routine computes two convolutions in one pass."""
    return descriptor.startswith("conv2d_pair/")


@contextmanager
def costs_in(folder: str) -> Iterator[None]:
    """Measured costs are read from there, and written there."""
    before = os.environ.get("SOFTNEURO_CACHE_DIR")
    os.environ["SOFTNEURO_CACHE_DIR"] = folder
    try:
        yield
    finally:
        os.environ.pop("SOFTNEURO_CACHE_DIR")
        if before is not None:
            os.environ["SOFTNEURO_CACHE_DIR"] = before


def plan_without(
    graph: softneuro.Graph, unwanted: Callable[[str], bool], threads: int, **options: str
) -> softneuro.Plan:
    """The plan that tuning finds where every routine with an unwanted descriptor is said to take a second."""

    def tuned() -> tuple[softneuro.Plan, list[str]]:
        plan = softneuro.tune(graph, {"threads": threads, **options})
        return plan, [layer.descriptor for layer in plan.layers]

    return solved_without(tuned, unwanted)


def solved_without(solve: Callable[[], tuple[T, Iterable[str]]], unwanted: Callable[[str], bool]) -> T:
    """What `solve` makes, beside the descriptors in it, where every unwanted routine is said to take a second.

    Costs are those that the database has measured; what is measured here is not kept.
    """
    with tempfile.TemporaryDirectory() as first:
        known = Path(_C.CostDb.default_directory()) / "costs.txt"
        if known.exists():
            copy(str(known.parent), first, lambda record: is_wanted(record, unwanted))
        for _ in range(ROUNDS):
            # A folder of its own each time: a database is read once.
            with tempfile.TemporaryDirectory() as folder, costs_in(folder):
                copy(first, folder, lambda _: True)
                slow_down(folder, unwanted)
                solved, descriptors = solve()
                if not any(map(unwanted, descriptors)):
                    return solved
                copy(folder, first, lambda _: True)
    raise softneuro.Error("no plan does without the unwanted routines")


Record = tuple[str, _C.CostKey, dict[str, Any]]  # kind, key, fields


def is_wanted(record: Record, unwanted: Callable[[str], bool]) -> bool:
    """False for the forecasts of what is wanted: they say what cannot win against the unwanted."""
    kind, key, _ = record
    return kind != "forecast" or unwanted(key.descriptor)


def copy(source: str, target: str, wanted: Callable[[Record], bool]) -> None:
    """Adds the newest records of a database to another."""
    to = _C.CostDb(target)
    for record in _C.CostDb(source).records():
        if wanted(record):
            to.put(*record)


def slow_down(folder: str, unwanted: Callable[[str], bool]) -> None:
    """Costs a second in that database: whatever is known of unwanted routines."""
    database = _C.CostDb(folder)
    for kind, key, _ in database.records():
        if kind in {"time", "forecast"} and unwanted(key.descriptor):
            plain = _C.CostKey(key.device, key.threads, key.signature, key.descriptor, key.version)
            database.add(plain, 1.0)
