"""What an evaluation of a model returned, and how two of them differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from softneuro import _C

_NORMAL_975 = 1.959963984540054  # 97.5 % of a normal distribution lie below
_SAME = 1e-9  # scores that differ by less, or by less of their size, are the same


@dataclass(frozen=True)
class Score:
    """What an evaluation returned: a number, or one by sample, whose mean counts."""

    mean: float
    samples: tuple[float, ...] = ()

    @classmethod
    def of(cls, value: Any) -> Score:
        """Raises Error for what is no score: nothing, NaN, or several numbers in more than one dimension."""
        flat = getattr(value, "tolist", lambda: value)()
        if isinstance(flat, Sequence) and not isinstance(flat, str):
            try:
                samples = tuple(float(one) for one in flat)
            except (TypeError, ValueError):
                raise _C.Error("evaluate() returned a sequence that is not one of numbers") from None
            if not samples:
                raise _C.Error("evaluate() returned no score: there were no samples")
            for number, one in enumerate(samples):
                if not math.isfinite(one):
                    raise _C.Error(f"evaluate() returned {one} for sample {number}; a score is a finite number")
            score = cls(statistics.fmean(samples), samples)
        else:
            try:
                score = cls(float(flat))
            except (TypeError, ValueError):
                raise _C.Error(f"evaluate() returned {flat!r}, which is no number; larger numbers are better") from None
        if not math.isfinite(score.mean):
            raise _C.Error(f"evaluate() returned {score.mean}; a score is a finite number, larger is better")
        return score

    def difference(self, other: Score) -> float:
        """Between the means, or where these are the same, the largest between samples; 0: none."""
        pairs = [(self.mean, other.mean), *zip(self.samples, other.samples, strict=False)]
        differences = [0.0 if math.isclose(a, b, rel_tol=_SAME, abs_tol=_SAME) else abs(a - b) for a, b in pairs]
        return differences[0] or max(differences)


def drop_interval(floats: Score, other: Score) -> tuple[float, float] | None:
    """The 95 % interval of the drop's mean, by pairs of samples; None where there are no pairs."""
    count = len(floats.samples)
    if count < 2 or count != len(other.samples):
        return None
    drops = [a - b for a, b in zip(floats.samples, other.samples, strict=True)]
    mean, half = statistics.fmean(drops), _NORMAL_975 * statistics.stdev(drops) / math.sqrt(count)
    return mean - half, mean + half
