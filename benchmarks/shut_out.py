"""Plans that would be best if some routines did not exist."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import softneuro
from softneuro import _C

ROUNDS = 8  # of tuning: with some shut out, others may be measured for the first time
SPARSE = {entry["descriptor"] for entry in softneuro.registry() if entry["by_pattern"]}


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
    """The plan that tuning finds where every routine with an unwanted descriptor is said to take a second.

    Costs are those that the database has measured; what is measured here is not kept.
    """
    with tempfile.TemporaryDirectory() as first:
        costs = Path(first) / "costs.txt"
        known = Path(_C.CostDb.default_directory()) / "costs.txt"
        if known.exists():
            costs.write_text("".join(wanted_lines(known.read_text(), unwanted)))
        for _ in range(ROUNDS):
            # A folder of its own each time: a database is read once.
            with tempfile.TemporaryDirectory() as folder, costs_in(folder):
                if costs.exists():
                    shutil.copy(costs, folder)
                slow_down(folder, unwanted)
                plan = softneuro.tune(graph, {"threads": threads, **options})
                if not any(unwanted(layer.descriptor) for layer in plan.layers):
                    return plan
                shutil.copy(Path(folder) / "costs.txt", first)
    raise softneuro.Error("no plan does without the unwanted routines")


def wanted_lines(text: str, unwanted: Callable[[str], bool]) -> Iterator[str]:
    """Lines of a database, less the forecasts of what is wanted: they say what cannot win against the unwanted."""
    for line in text.splitlines(keepends=True):
        cost = cost_of(line)
        if cost is None or cost.runs > 0 or unwanted(cost.descriptor):
            yield line


class Cost(NamedTuple):
    """A line of a database."""

    key: _C.CostKey
    descriptor: str
    runs: int  # that it was measured in


def cost_of(line: str) -> Cost | None:
    """None for lines that are no costs."""
    fields = [unquote(field) for field in line.split(" ")]
    if len(fields) < 10 or fields[1] != "cost":
        return None
    key = _C.CostKey(fields[3], int(fields[4]), fields[5], fields[6], fields[2])
    return Cost(key, fields[6], int(fields[9]))


def slow_down(folder: str, unwanted: Callable[[str], bool]) -> None:
    """Costs a second in that database: whatever is known of unwanted routines."""
    path = Path(folder) / "costs.txt"
    database = _C.CostDb(folder)
    for line in path.read_text().splitlines() if path.exists() else ():
        cost = cost_of(line)
        if cost is not None and unwanted(cost.descriptor):
            database.add(cost.key, 1.0)
