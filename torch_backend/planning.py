"""What a region asks of the core: a plan, a net, and whether the net is worth having."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

import softneuro
from softneuro.torch_backend.options import Options

NETS_PER_REGION = 32  # prepared at once, by shapes and weights
SHAPES_PER_REGION = 256  # plans and verdicts remembered
JUDGE_ROUNDS = 7
JUDGE_SECONDS = 1.0


@dataclass(frozen=True)
class Verdict:
    """Outcome of the comparison of a net with the host."""

    wins: bool
    reason: str
    net_s: float
    host_s: float
    error: float  # relative L2, the worst of the outputs


def make_plan(graph: Any, options: Options, threads: int, near: Any) -> tuple[Any, Any]:
    """A plan for the graph and the tuner's report; `near` is a plan of the same region for other shapes."""
    if not hasattr(softneuro, "tune"):
        return None, None
    if near is not None:
        return near, None
    result = softneuro.tune(graph, options.core(threads))
    return result.plan, result.report


def make_net(graph: Any, plan: Any, threads: int) -> Any:
    """A net prepared by a plan."""
    return softneuro.Net(graph, plan, threads=threads)


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative L2 error where the reference is finite; absolute if it is zero there."""
    finite = reference.isfinite()
    difference = (result.double() - reference.double())[finite]
    if not bool(difference.isfinite().all()):
        return math.inf
    norm = float(reference.double()[finite].norm())
    return float(difference.norm()) / (norm if norm > 0 else 1.0)


def judge(
    net: Callable[[], Sequence[torch.Tensor]],
    host: Callable[[], Sequence[torch.Tensor]],
    key: str,
    options: Options,
) -> Verdict | None:
    """Compares net and host on the real inputs, in error and in time, by interleaved rounds."""
    if options.tune != "profile":
        return None
    expected, results = host(), net()
    error = max((relative_error(a, b) for a, b in zip(results, expected, strict=True)), default=0.0)
    if error > options.max_error:
        return Verdict(False, f"its error of {error:.1e} is above max_error={options.max_error:g}", 0.0, 0.0, error)
    times: dict[Any, list[float]] = {net: [], host: []}
    deadline = time.perf_counter() + JUDGE_SECONDS
    for round_ in range(JUDGE_ROUNDS):
        for run, measured in times.items():
            start = time.perf_counter()
            run()
            measured.append(time.perf_counter() - start)
        if round_ >= 1 and time.perf_counter() > deadline:
            break
    net_s, host_s = median(times[net]), median(times[host])
    reason = f"{1e3 * net_s:.3f} ms against the host's {1e3 * host_s:.3f} ms"
    return Verdict(net_s < host_s, reason, net_s, host_s, error)
