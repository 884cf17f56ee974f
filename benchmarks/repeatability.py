"""Whether a network gets equally good plans from tuning to tuning, and whatever was tuned before it.

Each network is tuned several times in databases of their own that know nothing (fresh), and several times in databases
where other networks were tuned before (after others), one of them quantized. Every tuning is a process of its own and
leaves a plan file. Then all plans of the network run by turns in one process. Figures are milliseconds, medians over
all turns. Spread: how much slower the slowest plan is than the fastest, in per cent. Own spread: the same of one plan
that is loaded as often as there are plans in a group. Distinct: how many different plans there were.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from benchmarks import models, record
from benchmarks.tables import figures

NETWORKS = ["resnet50", "googlenet", "vgg16", "convnextv2_atto", "bert_base:16"]
BEFORE = ["resnet18:qdq", "squeezenet1_1", "resnet50", "googlenet", "mobilenet_v2"]  # what others are tuned
HEADER = ["network", "fresh ms", "spread %", "after others ms", "spread %", "both %", "own spread %", "distinct"]


def build(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A network of `benchmarks.models`; of words, `name:words`."""
    network, _, words = name.partition(":")
    return models.build(network, size=int(words or 0))


def tune(name: str, plan: Path | None, threads: int) -> None:
    """Tunes in this process's database and saves the plan."""
    if name.endswith(":qdq"):
        tune_quantized(name.removesuffix(":qdq"), threads)
        return
    from softneuro import torch_backend

    model, example = build(name)
    options = {"plan": str(plan)} if plan else {}
    with torch.no_grad():
        torch_backend.load(torch.export.export(model, (example,)), **options)(example)


def tune_quantized(network: str, threads: int) -> None:
    """The same of a QDQ file."""
    from benchmarks import quantized
    from benchmarks.peers import session_options
    from softneuro import providers

    with tempfile.TemporaryDirectory() as folder:
        _, path, _ = quantized.make_files(network, 0, Path(folder))
        providers.session(path, session_options(threads))


def in_own_process(name: str, costs: Path, plan: Path | None, threads: int) -> None:
    words = [sys.executable, "-m", "benchmarks.repeatability", name, "--threads", str(threads), "--worker"]
    subprocess.run(
        [*words, str(plan or "")],
        env={**os.environ, "SOFTNEURO_CACHE_DIR": str(costs)},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def by_turns(name: str, plans: Sequence[Path], seconds: float) -> list[float]:
    """Median milliseconds of each plan."""
    from softneuro import torch_backend

    model, example = build(name)
    program = torch.export.export(model, (example,))
    with torch.no_grad():
        runs = [torch_backend.load(program, plan=str(plan), never_worse=False) for plan in plans]
        for run in runs:
            run(example)
        samples: list[list[float]] = [[] for _ in runs]
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(samples[0]) < 15:
            for run, times in zip(runs, samples, strict=True):
                run(example)  # takes the caches back
                start = time.perf_counter()
                run(example)
                times.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(times) for times in samples]


def choices(plan: Path) -> str:
    """What a plan file has chosen, without times and errors."""
    lines = plan.read_text().splitlines()
    return "\n".join(" ".join(line.split()[:4]) for line in lines if line.split()[0] in ("layer", "adapt"))


def spread(times: Sequence[float]) -> float:
    return 100 * (max(times) / min(times) - 1)


def measure(name: str, tunings: int, threads: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Figures of one network."""
    groups: dict[str, list[Path]] = {"fresh": [], "after": []}
    others = [other for other in BEFORE if other.partition(":")[0] != name.partition(":")[0]]
    for index in range(tunings):
        for group, plans in groups.items():
            costs = folder / f"{group}{index}"
            if group == "after":
                for step in range(2):
                    in_own_process(others[(index + step) % len(others)], costs, None, threads)
            plans.append(folder / f"{group}{index}.txt")
            in_own_process(name, costs, plans[-1], threads)
    plans = [*groups["fresh"], *groups["after"]]
    control = [groups["fresh"][0]] * (tunings - 1)
    times = by_turns(name, [*plans, *control], seconds)
    return {
        "fresh": times[:tunings],
        "after": times[tunings : 2 * tunings],
        "own": [times[0], *times[2 * tunings :]],
        "distinct": len({choices(plan) for plan in plans}),
    }


def row(name: str, found: dict[str, Any]) -> list[str]:
    """The table's row for one network."""
    fresh, after = found["fresh"], found["after"]
    return [
        name,
        f"{statistics.median(fresh):.2f}",
        f"{spread(fresh):.1f}",
        f"{statistics.median(after):.2f}",
        f"{spread(after):.1f}",
        f"{spread([*fresh, *after]):.1f}",
        f"{spread(found['own']):.1f}",
        str(found["distinct"]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--tunings", type=int, default=5, help="of each network, fresh and after others (default: 5)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30, help="of runs per network (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--keep", type=Path, help="keep the databases and plans in this folder")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    if arguments.worker is not None:
        tune(arguments.networks[0], Path(arguments.worker) if arguments.worker else None, arguments.threads)
        return
    console = Console(width=max(Console().width, 140))
    rows, measured = [], {}
    with tempfile.TemporaryDirectory() as own, Progress(console=console, transient=True) as progress:
        task = progress.add_task("tunings", total=len(arguments.networks))
        for network in arguments.networks:
            progress.update(task, description=network)
            folder = (arguments.keep or Path(own)) / network.replace(":", "_")
            folder.mkdir(parents=True, exist_ok=True)
            found = measure(network, arguments.tunings, arguments.threads, arguments.seconds, folder)
            measured[network] = found
            rows.append(row(network, found))
            progress.advance(task)
    console.print(figures(f"{arguments.tunings} tunings each way, {arguments.threads} threads", HEADER, rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1) + "\n")
    if arguments.record:
        record.write("repeatability", sys.argv[1:], HEADER, rows)


if __name__ == "__main__":
    main()
