"""Times of a session, alternating with those of another."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import softneuro
from softneuro.error_measure import worst_error

LEAST_RUNS = 5
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_DTYPES = {"float16", "float32", "float64", "bool"} | _INTEGERS


def example_inputs(session: Any) -> dict[str, np.ndarray]:
    """Random inputs; integers are zero. Raises softneuro.Error if a shape is open or a type has no such values."""
    random = np.random.default_rng(0)
    feeds = {}
    for entry in session.get_inputs():
        if any(not isinstance(dim, int) for dim in entry.shape):
            raise softneuro.Error(f"input {entry.name} has the open shape {entry.shape}: give sizes with --shape")
        kind = entry.type.removeprefix("tensor(").removesuffix(")")
        dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
        if dtype not in _DTYPES:
            raise softneuro.Error(f"input {entry.name} is {entry.type}: there are no examples of that type")
        values = random.standard_normal(entry.shape) if dtype.startswith("float") else np.zeros(entry.shape)
        feeds[entry.name] = values.astype(dtype)
    return feeds


def alternate(session: Any, other: Any, seconds: float) -> dict[str, Any]:
    """Medians of runs in turn, and the largest relative error of an output; `other` may be None."""
    feeds = example_inputs(session)
    result = session.run(None, feeds)
    times: tuple[list[float], list[float]] = ([], [])
    sessions = [session] if other is None else [session, other]
    reference = result if other is None else other.run(None, feeds)
    end = time.perf_counter() + seconds
    while len(times[0]) < LEAST_RUNS or time.perf_counter() < end:
        for which, samples in zip(sessions, times, strict=False):
            start = time.perf_counter()
            which.run(None, feeds)
            samples.append(time.perf_counter() - start)
    data: dict[str, Any] = {"seconds": statistics.median(times[0]), "runs": len(times[0])}
    if other is not None:
        data["cpu_seconds"] = statistics.median(times[1])
        data["speedup"] = data["cpu_seconds"] / data["seconds"]
        data["error"] = worst_error(result, reference)
    return data
