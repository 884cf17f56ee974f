"""Attention alone, 12 heads of 64: torch's fused one against `torch.ops.softneuro.attention`, in interleaved rounds.

Milliseconds are medians; in brackets how many times as fast softneuro is. A mask is one of booleans that leaves out the
last tenth of the keys. The error is relative L2 to the exact result in float64, torch's own behind it. Peak: the share
of the machine's multiply-adds, of a causal one only those that are not masked.

Part of `python -m benchmarks.transformers --attention`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

from softneuro import available_isas, device
from softneuro.error_measure import relative_error

HEADS, WIDTH = 12, 64
ROWS = [128, 512, 1500]
KINDS = ["full", "causal", "mask"]
HEADER = ["rows", "torch ms", "softneuro ms", "error", "peak"]


def arguments_of(kind: str, rows: int) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """q, k and v, and what else the two take."""
    torch.manual_seed(0)
    tensors = [torch.randn(1, HEADS, rows, WIDTH) for _ in range(3)]
    if kind == "causal":
        return tensors, {"is_causal": True}
    if kind == "mask":
        return tensors, {"attn_mask": (torch.arange(rows) < rows - rows // 10).expand(1, 1, rows, rows)}
    return tensors, {}


def own() -> Callable[..., torch.Tensor] | None:
    """softneuro's op, where this build has it."""
    from softneuro.torch_backend import ops

    ops.load()
    found: Callable[..., torch.Tensor] | None = getattr(torch.ops.softneuro, "attention", None)
    return found


def times(ways: dict[str, Callable[[], torch.Tensor]], rounds: int) -> dict[str, float]:
    """Median milliseconds."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            run()
            for _ in range(3):
                start = time.perf_counter()
                run()
                samples[name].append((time.perf_counter() - start) * 1e3)
    return {name: median(found) for name, found in samples.items()}


def measure(
    rounds: int, threads: int, quick: bool, console: Console
) -> tuple[dict[str, Any], list[str], list[list[str]]]:
    """Figures by case; a table's header and rows."""
    measured: dict[str, Any] = {}
    table = []
    peak = max(device.fma_peak(isa, threads, 0.2) for isa in available_isas())
    ours = own()
    if ours is None:
        console.print("[dim]no softneuro: this build has no torch.ops.softneuro.attention[/dim]")
    cases = [(kind, rows) for kind in KINDS for rows in (ROWS[:1] if quick else ROWS)]
    with torch.no_grad():
        for kind, rows in track(cases, "attention", console=console, transient=True):
            tensors, more = arguments_of(kind, rows)
            ops: dict[str, Callable[..., torch.Tensor]] = {"torch": torch.nn.functional.scaled_dot_product_attention}
            if ours is not None:
                ops["softneuro"] = ours
            exact = ops["torch"](*(tensor.double() for tensor in tensors), **more)
            errors = {name: relative_error(op(*tensors, **more), exact) for name, op in ops.items()}
            medians = times({name: partial(op, *tensors, **more) for name, op in ops.items()}, rounds)
            work = 4 * HEADS * WIDTH * (rows * (rows + 1) // 2 if kind == "causal" else rows * rows)
            shares = {name: work / (ms * 1e-3) / peak for name, ms in medians.items()}
            measured[f"{kind} {rows}"] = {"ms": medians, "error": errors, "peak": shares}
            known = "softneuro" in medians
            ratio = f" ({medians['torch'] / medians['softneuro']:.2f})" if known else ""
            table.append(
                [
                    f"{kind} {rows}",
                    f"{medians['torch']:.3f}{ratio}",
                    f"{medians['softneuro']:.3f}" if known else "-",
                    ", ".join(f"{errors[name]:.1e}" for name in reversed(ops)),
                    ", ".join(f"{shares[name]:.0%}" for name in reversed(ops)),
                ]
            )
    return measured, HEADER, table
