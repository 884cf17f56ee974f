"""Never worse: whether a region's net beats the host, measured on the real inputs and remembered."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

import softneuro
from softneuro.error_measure import measure_error
from softneuro.torch_backend.options import Options

MIN_ROUNDS = 5
MAX_ROUNDS = 40
CLEAR_SECONDS = 1.0  # spent on a clear case at most, beyond the rounds that it needs at least
CLOSE_SECONDS = 4.0  # on a close one
CLOSE = 0.05  # relative difference of times below which a verdict is close: noise may have made it
TRIALS = 2  # a close verdict is taken so often, each in its own process, and then kept

Run = Callable[[], Sequence[torch.Tensor]]


@dataclass(frozen=True)
class Verdict:
    """Outcome of the comparison of a net with the host."""

    wins: bool
    reason: str
    net_s: float
    host_s: float
    error: float  # the worst of the outputs, on a scale on which max_error is allowed


def verdict(net_s: float, host_s: float, error: float, max_error: float) -> Verdict:
    """Whether a net with these figures is to run."""
    if error > max_error:
        return Verdict(False, f"its error of {error:.1e} is above max_error={max_error:g}", net_s, host_s, error)
    return Verdict(
        net_s < host_s, f"{1e3 * net_s:.3f} ms against the host's {1e3 * host_s:.3f} ms", net_s, host_s, error
    )


def is_close(net_s: float, host_s: float) -> bool:
    """Whether two times differ by no more than noise may."""
    return abs(net_s - host_s) <= CLOSE * max(net_s, host_s)


def numbers(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor's elements for NumPy, which lacks bfloat16."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


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


_databases: dict[str, softneuro._C.CostDb] = {}  # by directory


def database() -> softneuro._C.CostDb:
    """The cost database of the directory that the environment names now."""
    directory = softneuro._C.CostDb.default_directory()
    if directory not in _databases:
        _databases[directory] = softneuro._C.CostDb(directory)
    return _databases[directory]


def verdict_key(
    region: str, signature: Sequence[int], options: Options, plan: softneuro.Plan | None, allowed: float
) -> softneuro._C.CostKey:
    """What a verdict is valid for: region, shapes, plan and the error it was allowed, host and device."""
    device = f"{softneuro.cpu_id()} {'+'.join(softneuro.available_isas() + softneuro.available_extensions())}"
    chosen = [layer.descriptor for layer in plan.layers] + [str(a[:3]) for a in plan.adapts] if plan else []
    digest = hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:16]
    host = f"torch {torch.__version__} {options.host} threads {options.threads} plan {digest}"
    text = f"region {region} {','.join(map(str, signature))} {allowed:g}"
    return softneuro._C.CostKey(device, signature[0], text, host, softneuro._C.kernel_hash())


def judge(net: Run, host: Run, key: softneuro._C.CostKey, options: Options, truth: Run | None = None) -> Verdict | None:
    """Compares net and host, in error and in time, unless the database knows the outcome.

    `truth` gives what is right where the host itself is inexact; without it the host is right. A close outcome is
    measured once more in a later process, and the two are put together. None where nothing is known and nothing may be
    measured.
    """
    if options.tune == "off":
        return None
    known = database().find_verdict(key)
    if known is not None:
        _, net_s, host_s, error, trials = known
        final = trials >= TRIALS or error > options.max_error or not is_close(net_s, host_s)
        if final or options.tune != "profile":
            return verdict(net_s, host_s, error, options.max_error)
    elif options.tune != "profile":
        return None
    now_net, now_host, error = compare(net, host, options.max_error, truth)
    trials = 1
    if known is not None:
        # The geometric mean of the ratios, on the scale of the new times.
        ratio = math.sqrt(now_net / now_host * known[1] / known[2])
        now_net, error, trials = ratio * now_host, max(error, known[3]), known[4] + 1
    found = verdict(now_net, now_host, error, options.max_error)
    if math.isfinite(found.error):
        database().add_verdict(key, found.wins, found.net_s, found.host_s, found.error, trials)
    return found


def compare(net: Run, host: Run, max_error: float, truth: Run | None = None) -> tuple[float, float, float]:
    """Seconds of net and host on the real inputs, and the worst relative error.

    The two run in turns, and what counts is the median of the ratios of neighbouring runs: whatever else the machine
    does slows both. It ends early if nearly all rounds have the same winner, and goes on for longer if they do not.
    """
    error = worst_error(net(), host(), truth and truth(), max_error)
    ratios: list[float] = []
    host_times: list[float] = []
    start = time.perf_counter()
    for round_ in range(MAX_ROUNDS if error <= max_error else 1):
        # Whoever comes second finds the other's data in the caches.
        if round_ % 2:
            net_s, host_s = _timed(net), _timed(host)
        else:
            host_s, net_s = _timed(host), _timed(net)
        ratios.append(net_s / host_s)
        host_times.append(host_s)
        spent = time.perf_counter() - start
        rounds, clear = round_ + 1, _is_clear(ratios)
        if rounds >= MIN_ROUNDS and spent > (CLEAR_SECONDS if clear else CLOSE_SECONDS):
            break
        # What takes seconds for one run is worth three, and what agrees so often needs no more.
        if (rounds >= 3 and spent > 2 * CLOSE_SECONDS) or (rounds >= 2 * MIN_ROUNDS and clear):
            break
    typical = median(host_times)
    return median(ratios) * typical, typical, error


def worst_error(
    results: Sequence[torch.Tensor],
    hosts: Sequence[torch.Tensor],
    truths: Sequence[torch.Tensor] | None,
    max_error: float,
) -> float:
    """Of a net's outputs, on a scale on which max_error is allowed."""
    errors = (
        measure_error(numbers(result), numbers(host), None if truth is None else numbers(truth)).against(max_error)
        for result, host, truth in zip(results, hosts, truths or [None] * len(results), strict=True)
    )
    return max(errors, default=0.0)


def _is_clear(ratios: Sequence[float]) -> bool:
    """Whether the rounds agree on the winner, and by more than a close verdict's margin."""
    faster = sum(ratio < 1 for ratio in ratios)
    # A sign test at about one error in a thousand.
    one_sided = abs(2 * faster - len(ratios)) >= min(len(ratios), 3.3 * math.sqrt(len(ratios)))
    middle = median(ratios)
    return one_sided and not is_close(middle, 1.0)


def _timed(run: Run) -> float:
    start = time.perf_counter()
    run()
    return max(time.perf_counter() - start, 1e-9)
