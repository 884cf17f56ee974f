"""How far results are from what is right: what max_error is held against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from softneuro._C import OutputError, error_of_steps, judged_error
from softneuro._C import measure_error as measure_arrays

__all__ = ["OutputError", "error_of_steps", "judged_error", "measure_error", "relative_error", "worst_error"]


def measure_error(result: Any, host: Any, truth: Any = None) -> OutputError:
    """Distances of a result, and of the host's, from the truth: arrays, or what NumPy makes arrays of.

    Without a truth the host is it. Relative L2 over what is finite, absolute where the truth is zero, infinite if the
    result is finite where it should not be or the reverse. Raises Error if the numbers of elements differ.
    """
    return measure_arrays(np.asarray(result), np.asarray(host), None if truth is None else np.asarray(truth))


def relative_error(result: Any, truth: Any) -> float:
    """The error of one result."""
    return measure_error(result, truth).error


def worst_error(results: Iterable[Any], truths: Iterable[Any]) -> float:
    """The largest error of several results; 0 if there are none."""
    return max((relative_error(*pair) for pair in zip(results, truths, strict=True)), default=0.0)
