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


class PlanFileError(RuntimeError):
    """The file of the option `plan` cannot be used: an error of the caller, never a reason to leave it to the host."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of the comparison of a net with the host."""

    wins: bool
    reason: str
    net_s: float
    host_s: float
    error: float  # relative L2, the worst of the outputs


def make_plan(
    graph: softneuro.Graph, options: Options, threads: int, allowed: float, near: softneuro.Plan | None
) -> softneuro.Plan:
    """A plan for the graph whose error is to be below `allowed`.

    `near`, a plan of the same region for other shapes, is carried over instead of tuning.
    """
    if near is not None:
        return near
    try:
        return softneuro.tune(graph, options.core(threads=threads, max_error=allowed))
    except softneuro.Error as error:
        if options.plan:
            raise PlanFileError(str(error)) from error
        raise


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative L2 error where the reference is finite; absolute if it is zero there."""
    finite = reference.isfinite()
    difference = (result.double() - reference.double())[finite]
    if not bool(difference.isfinite().all()):
        return math.inf
    norm = float(reference.double()[finite].norm())
    return float(difference.norm()) / (norm if norm > 0 else 1.0)


_databases: dict[str, softneuro._C.CostDb] = {}  # by directory


def database() -> softneuro._C.CostDb:
    """The cost database of the directory that the environment names now."""
    directory = softneuro._C.CostDb.default_directory()
    if directory not in _databases:
        _databases[directory] = softneuro._C.CostDb(directory)
    return _databases[directory]


def tighter(found: Verdict, allowed: float, options: Options) -> float | None:
    """What to allow a plan after one that was too inexact on the real inputs; None if that cannot help.

    The tuner knows a plan's error on random inputs, which real ones may magnify further.
    """
    if not options.max_error < found.error < math.inf or options.plan or allowed < options.max_error / 100:
        return None
    return float(f"{allowed * max(0.5 * options.max_error / found.error, 0.1):.2g}")


def same_routines(a: softneuro.Plan | None, b: softneuro.Plan | None) -> bool:
    """Whether both plans run every layer alike."""
    routines = [[layer.descriptor for layer in plan.layers] if plan is not None else [] for plan in (a, b)]
    return routines[0] == routines[1]


def verdict_key(region: str, signature: Sequence[int], options: Options, allowed: float) -> softneuro._C.CostKey:
    """What a verdict is valid for: region, shapes, host, device and the error allowed, which decides on the plan."""
    device = f"{softneuro.cpu_id()} {'+'.join(softneuro.available_isas())}"
    host = f"torch {torch.__version__} {options.host}"
    text = f"region {region} {','.join(map(str, signature))} {allowed:g}"
    return softneuro._C.CostKey(device, signature[0], text, host, softneuro._C.kernel_hash())


def judge(
    net: Callable[[], Sequence[torch.Tensor]],
    host: Callable[[], Sequence[torch.Tensor]],
    key: softneuro._C.CostKey,
    options: Options,
) -> Verdict | None:
    """Compares net and host, in error and in time, unless the database knows the outcome.

    None where nothing is known and nothing may be measured.
    """
    if options.tune == "off":
        return None
    known = database().find_verdict(key)
    if known is not None:
        return verdict(*known[1:], options.max_error)
    if options.tune != "profile":
        return None
    found = verdict(*compare(net, host, options.max_error), options.max_error)
    if math.isfinite(found.error):
        database().add_verdict(key, found.wins, found.net_s, found.host_s, found.error)
    return found


def verdict(net_s: float, host_s: float, error: float, max_error: float) -> Verdict:
    """Whether a net with these figures is to run."""
    if error > max_error:
        return Verdict(False, f"its error of {error:.1e} is above max_error={max_error:g}", net_s, host_s, error)
    return Verdict(
        net_s < host_s, f"{1e3 * net_s:.3f} ms against the host's {1e3 * host_s:.3f} ms", net_s, host_s, error
    )


def compare(
    net: Callable[[], Sequence[torch.Tensor]], host: Callable[[], Sequence[torch.Tensor]], max_error: float
) -> tuple[float, float, float]:
    """Seconds of net and host, medians of interleaved rounds on the real inputs, and the worst relative error."""
    expected, results = host(), net()
    error = max((relative_error(a, b) for a, b in zip(results, expected, strict=True)), default=0.0)
    times: dict[Any, list[float]] = {net: [], host: []}
    deadline = time.perf_counter() + JUDGE_SECONDS
    for round_ in range(JUDGE_ROUNDS if error <= max_error else 1):
        for run, measured in times.items():
            start = time.perf_counter()
            run()
            measured.append(time.perf_counter() - start)
        if round_ >= 1 and time.perf_counter() > deadline:
            break
    return median(times[net]), median(times[host]), error
