"""Every routine that accepts a layer, on the layers of known networks, against oneDNN and against the machine's floor.

The floor is the larger of two times: the layer's arithmetic at the multiply-add peak, and its memory traffic at the
read bandwidth of the cache level (of memory, with --cold) that holds it. Winograd's arithmetic is counted as the plain
sum's, so it may pass 100 %. All contenders of a shape are timed in turn in one process; a figure is a median. With one
thread, times are the thread's own, so other load on the machine matters little. oneDNN's are without the cost of
calling it from Python. A routine's params are chosen by a first quick round. By kind of layer, geometric mean and worst
over its shapes: how many times as fast as oneDNN the best routine is, and the best of those that only reorder sums.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import operator
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import onednn, record, shapes
from benchmarks.shapes import Shape, Weights
from benchmarks.tables import figures
from softneuro import _C, available_extensions, available_isas, cpu_brand, device, registry


@dataclass
class Settings:
    threads: int
    cold: bool
    seconds: float
    all_levels: bool
    only: str
    max_error: float
    overhead: dict[str, float] = field(default_factory=dict)  # of calling oneDNN, by layer type
    reads: dict[str, float] = field(default_factory=dict)  # bytes per second by memory level


@dataclass
class Row:
    """One contender's result on one shape."""

    name: str
    seconds: float
    tuning: str = ""


def routine_key(entry: dict[str, Any]) -> str:
    """What the levels of one routine have in common."""
    name = entry["descriptor"].removesuffix("_" + entry["isa"])
    return re.sub(r"nchw\d+([ct])", r"nchw\1", name)


def accepting(shape: Shape, weights: Weights, settings: Settings) -> dict[str, list[str]]:
    """Descriptors with their params by routine; of a routine built for several levels only the best."""
    entries = {entry["descriptor"]: entry for entry in registry() if entry["layer"] == shape.type}
    found: dict[str, list[str]] = {}
    accepted = _C.testing.accepting(shape.type, shape.attrs, weights, [shape.input], {}, settings.threads)
    for descriptor in accepted:
        expected = _C.testing.expected_error(shape.type, shape.attrs, weights, [shape.input], descriptor)
        if expected <= 0.1 * settings.max_error:  # what many layers leave to each
            found.setdefault(descriptor.split("{")[0], []).append(descriptor)
    rank = available_extensions() + available_isas()
    here = [routine_key(entry) for entry in entries.values() if entry["available"]]
    best: dict[str, str] = {}
    for routine in found:
        key = routine_key(entries[routine])
        if routine.endswith("_scalar") and rank[0] != "scalar" and here.count(key) == 1:
            continue  # its other levels are of other machines
        if key not in best or rank.index(entries[routine]["isa"]) < rank.index(entries[best[key]]["isa"]):
            best[key] = routine
    wanted = found if settings.all_levels else best.values()
    return {routine: found[routine] for routine in wanted if fnmatch.fnmatch(routine, settings.only)}


def timer(shape: Shape, weights: Weights, descriptor: str, settings: Settings) -> _C.RoutineTimer:
    return _C.RoutineTimer(shape.type, shape.attrs, weights, [shape.input], descriptor, {}, settings.threads)


def best_tuning(shape: Shape, weights: Weights, descriptors: list[str], settings: Settings) -> str:
    """The params that a few quick runs like best; one packing at a time is held."""
    if len(descriptors) == 1:
        return descriptors[0]
    times: dict[str, float] = {}
    for descriptor in descriptors:
        one = timer(shape, weights, descriptor, settings)
        one.run(1)
        times[descriptor] = min(one.run(3, settings.cold))
    return min(times, key=lambda descriptor: times[descriptor])


def peer_sampler(call: onednn.Call, settings: Settings, overhead: float) -> Callable[[], float]:
    now = onednn.clock(settings.threads)

    def sample() -> float:
        onednn.settle(call, settings.threads, settings.cold)
        start = now()
        call()
        return max((now() - start) * 1e-9 - overhead, 1e-8)

    return sample


def routine_sampler(one: _C.RoutineTimer, settings: Settings) -> Callable[[], float]:
    return lambda: one.run(1, True)[0] if settings.cold else one.run(3)[2]


def race(samplers: dict[str, Callable[[], float]], settings: Settings) -> dict[str, float]:
    """Median seconds by contender, all timed in turn."""
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    for sampler in samplers.values():
        sampler()
    end = time.perf_counter() + settings.seconds
    while time.perf_counter() < end or min(map(len, samples.values())) < 5:
        for name, sampler in samplers.items():
            if settings.threads > 1:
                time.sleep(0.01)  # lets the other pool's threads go to sleep first
            samples[name].append(sampler())
    return {name: statistics.median(values) for name, values in samples.items()}


def floor(shape: Shape, arithmetic: float, settings: Settings) -> tuple[float, str]:
    """The least seconds that the layer can take without saving arithmetic, and what sets them.

    Args:
        shape: the layer.
        arithmetic: seconds that its multiplications and additions take at the peak.
        settings: of the run.
    """
    held = {name: 2 * _C.bytes_within(level, settings.threads) for name, level in device.LEVELS.items() if level < 4}
    fits = [name for name, size in held.items() if shape.bytes <= size * settings.threads]
    level = "memory" if settings.cold or not fits else fits[0]
    traffic = shape.bytes / settings.reads[level]
    return (arithmetic, "fma") if arithmetic >= traffic else (traffic, level)


def measure(shape: Shape, settings: Settings) -> tuple[list[Row], tuple[float, str]]:
    """oneDNN's ways first, then the routines, fastest first; and the floor.

    The multiply-add peak is taken in turn with the contenders: clocks fall with load, by a tenth or more on some CPUs.
    """
    weights = shape.weights()
    if shape.type not in settings.overhead:
        settings.overhead[shape.type] = onednn.call_overhead(shape.type, settings.threads)
    overhead = settings.overhead[shape.type]
    chosen = {
        routine: best_tuning(shape, weights, descriptors, settings)
        for routine, descriptors in accepting(shape, weights, settings).items()
    }
    samplers = {
        f"oneDNN {way}": peer_sampler(call, settings, overhead) for way, call in onednn.calls(shape, weights).items()
    }
    samplers |= {
        routine: routine_sampler(timer(shape, weights, descriptor, settings), settings)
        for routine, descriptor in chosen.items()
    }
    samplers["peak"] = lambda: shape.flops / device.fma_peak(threads=settings.threads, seconds=0.002)
    medians = race(samplers, settings)
    least = floor(shape, medians.pop("peak"), settings)
    rows = [Row(name, seconds, chosen.get(name, "")[len(name) :]) for name, seconds in medians.items()]
    return sorted(rows, key=lambda row: (row.name in chosen, row.seconds)), least


def is_peer(row: Row) -> bool:
    return row.name.startswith("oneDNN")


def print_shape(table: Table, shape: Shape, rows: list[Row], least: tuple[float, str]) -> None:
    seconds, kind = least
    peer = next((row.seconds for row in rows if is_peer(row)), math.nan)
    table.add_row(f"[bold]{shape.text}[/bold]", f"x{shape.count}", f"{seconds * 1e6:.1f}", kind, "")
    for row in rows:
        name = row.name.removeprefix(f"{shape.type}/cpu:float32:")
        table.add_row(
            f"  {name}[dim]{row.tuning}[/dim]",
            "",
            f"{row.seconds * 1e6:.1f}",
            f"{seconds / row.seconds:.0%}",
            f"{peer / row.seconds:.2f}",
        )
    table.add_section()


def is_comparable(shape: Shape, rows: list[Row], settings: Settings) -> bool:
    """Whether oneDNN takes at least half as long as calling it costs: else that cost's scatter is all one sees."""
    peers = [row.seconds for row in rows if is_peer(row)]
    return bool(peers) and min(peers) >= 0.5 * settings.overhead[shape.type]


Best = tuple[Shape, float, float, float]  # seconds of oneDNN, of all routines, of those that only reorder sums


def best_of(results: list[tuple[Shape, list[Row]]]) -> list[Best]:
    inexact = {entry["descriptor"] for entry in registry() if entry["error"] != "exact"}
    found = []
    for shape, rows in results:
        peers = [row.seconds for row in rows if is_peer(row)]
        own = [row for row in rows if not is_peer(row)]
        exact = [row.seconds for row in own if row.name not in inexact]
        if peers and exact:
            found.append((shape, min(peers), min(row.seconds for row in own), min(exact)))
    return found


def kinds(best: list[Best]) -> list[list[str]]:
    """How they stand to oneDNN, in all and by kind."""
    ratios: dict[str, list[tuple[float, float]]] = {}
    for shape, theirs, ours, exact in sorted(best, key=lambda entry: entry[0].kind):
        for kind in ("in all", shape.kind):
            ratios.setdefault(kind, []).append((theirs / ours, theirs / exact))
    rows = []
    for kind, pairs in ratios.items():
        cells = (f"{statistics.geometric_mean(v):.2f}, {min(v):.2f}" for v in zip(*pairs, strict=True))
        rows.append([kind, str(len(pairs)), *cells])
    return rows


def totals(best: list[Best]) -> str:
    """Over all of the networks' layers."""
    sums = [1e3 * sum(entry[0].count * entry[i] for entry in best) for i in (1, 2, 3)]
    return "all layers: oneDNN {:.2f} ms, all routines {:.2f} ms, exact routines {:.2f} ms".format(*sums)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layer", help="conv2d or linear (default: both)")
    parser.add_argument("--shapes", default="all", help=f"comma list of {', '.join(shapes.names())} (default: all)")
    parser.add_argument("--match", default="*", help="only shapes whose line matches, e.g. '*x3x3*'")
    parser.add_argument("--routine", default="*", help="only routines whose descriptor matches, e.g. '*direct*'")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="weights out of the caches before each run")
    parser.add_argument("--all-levels", action="store_true", help="lower instruction-set levels of a routine too")
    parser.add_argument("--max-error", type=float, default=1e-4, help="no routine that tuning would not try with it")
    parser.add_argument("--seconds", type=float, default=0.5, help="per shape (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    record.add_option(parser)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    own = operator.attrgetter("threads", "cold", "seconds", "all_levels", "routine", "max_error")
    settings = Settings(*own(arguments))
    settings.reads = {level: device.bandwidth("read", level, settings.threads) for level in device.LEVELS}
    names = shapes.names() if arguments.shapes == "all" else arguments.shapes.split(",")
    merged: dict[str, Shape] = {}
    for name in names:
        for shape in shapes.read(name):
            if arguments.layer in {None, shape.type} and fnmatch.fnmatch(shape.text, arguments.match):
                count = merged[shape.text].count if shape.text in merged else 0
                merged[shape.text] = replace(shape, count=shape.count + count)
    console = Console(width=max(Console().width, 120))
    peak = device.fma_peak(threads=settings.threads) / 1e9
    console.print(
        f"{cpu_brand()}, {settings.threads} thread(s), {peak:.0f} GFLOP/s, {'cold' if settings.cold else 'hot'}"
    )
    table = Table()
    for column in ("layer, routine", "", "us", "floor", "vs oneDNN"):
        table.add_column(column, justify="left" if column.startswith("layer") else "right", no_wrap=True)
    results: list[tuple[Shape, list[Row]]] = []
    measured = []
    with torch.no_grad(), Progress(console=console, transient=True) as progress:
        for shape in progress.track(list(merged.values()), description="shapes"):
            rows, least = measure(shape, settings)
            results.append((shape, rows))
            print_shape(table, shape, rows, least)
            seconds = {row.name + row.tuning: row.seconds for row in rows}
            figure = {"shape": shape.text, "count": shape.count, "flops": shape.flops, "seconds": seconds}
            measured.append(figure | {"floor_s": least[0], "floor": least[1]})
    console.print(table)
    compared = [(shape, rows) for shape, rows in results if is_comparable(shape, rows, settings)]
    best, header = best_of(compared), ("kind", "shapes", "all routines", "exact routines")
    console.print(figures("times as fast as oneDNN, geometric mean and worst", header, kinds(best)))
    console.print(totals(best), highlight=False)
    left_out = len(results) - len(compared)
    console.print(f"not compared: {left_out} shapes that take oneDNN less than half a call's own time", highlight=False)
    if arguments.json:
        machine = {"cpu": cpu_brand(), "threads": settings.threads, "cold": settings.cold, "gflops": peak}
        arguments.json.write_text(json.dumps({"machine": machine, "shapes": measured}, indent=1) + "\n")
    if arguments.record:
        record.write("routines", sys.argv[1:], header, kinds(best))


if __name__ == "__main__":
    main()
