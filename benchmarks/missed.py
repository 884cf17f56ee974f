"""Which algorithms networks would miss: each left out alone, and the plan solved anew without it.

An algorithm is a layer type's, whatever its instruction set and params. What leaving it out costs is the time of the
best plan without it over that of the best plan, by routines' own times. Substitutes hide each other: each is left out
alone, and nothing tells what leaving out two would cost. What stands in no network's plan costs nothing; --all names
it, too.

A network is one of benchmarks.networks by its name, quantized:NAME one of benchmarks.quantized at ONNX Runtime's door,
pruned:NAME:WAY:ZEROS one of benchmarks.sparse.

python -m benchmarks.missed resnet50 quantized:resnet50 pruned:vgg19:magnitude:90
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
from rich.console import Console

import softneuro
from benchmarks import models, networks, pruned, quantized
from benchmarks.layers import compile_and_capture
from benchmarks.peers import session_options
from benchmarks.shut_out import solved_without
from benchmarks.tables import figures
from softneuro import providers
from softneuro.providers.report import events

NETWORKS = [
    *networks.NETWORKS,
    *(f"quantized:{name}" for name in quantized.NETWORKS),
    *(f"pruned:{name}:{way}:{zeros}" for name, way, zeros in product(pruned.NETWORKS, pruned.WAYS, pruned.ZEROS)),
]
BUDGET = {"time_budget_s": 60}  # else the first plan, which has least time, knows least
LEVELS = re.compile(r"_(scalar|avx2|avxvnni|avx512|avx512vnni|amx|neon)$")

Solve = Callable[[], tuple[float, list[str]]]  # a network's best plan: its seconds, and its routines


def algorithm_of(descriptor: str) -> str:
    """The layer type and the algorithm: 'conv2d/cpu:float32:nchw16c/direct_avx2{rows=9}' is of 'conv2d/direct'."""
    parts = descriptor.partition("{")[0].split("/")
    return f"{parts[0]}/{LEVELS.sub('', parts[-1])}"


def captured(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Solve:
    """Tunes what torch's door makes of a model."""
    with torch.no_grad():
        _, regions = compile_and_capture(model, example)
    torch.compiler.reset()

    def solve() -> tuple[float, list[str]]:
        plans = [softneuro.tune(region.graph, {"threads": threads, **BUDGET}) for region in regions]
        return sum(plan.best_s for plan in plans), [layer.descriptor for plan in plans for layer in plan.layers]

    return solve


def in_session(path: str, threads: int) -> Solve:
    """Makes a session, which tunes what ONNX Runtime's door makes of a file."""

    def solve() -> tuple[float, list[str]]:
        session = providers.session(path, session_options(threads), never_worse=False, **BUDGET)
        plans = {event["region"]: event for event in events(session) if event["event"] == "prepared"}.values()
        descriptors = [layer["descriptor"] for plan in plans for layer in plan["layers"]]
        return sum(plan["best_s"] for plan in plans), descriptors

    return solve


def solver(name: str, threads: int, folder: Path) -> Solve:
    """What plans that network; files of quantized ones are kept in the folder."""
    kind, *rest = name.split(":")
    if kind == "quantized":
        return in_session(quantized.make_files(rest[0], 0, folder)[1], threads)
    if kind == "pruned":
        network, way, zeros = rest
        return captured(*pruned.build(network, float(zeros) / 100, way=way), threads)
    return captured(*models.build(name), threads)


def losses(solve: Solve) -> dict[str, float]:
    """By algorithm of the plan: how many times as long the best plan without it takes; infinite if there is none."""
    best, chosen = solve()
    found: dict[str, float] = {}
    for algorithm in sorted({algorithm_of(descriptor) for descriptor in chosen if descriptor}):

        def unwanted(descriptor: str, algorithm: str = algorithm) -> bool:
            return algorithm_of(descriptor) == algorithm

        try:
            found[algorithm] = solved_without(solve, unwanted) / best
        except softneuro.Error:
            found[algorithm] = math.inf
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help="default: all of the three benchmarks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep files of quantized networks there, and take those it has")
    parser.add_argument("--all", action="store_true", help="also the algorithms that no plan has")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console = Console(width=160)
    worst: dict[str, tuple[float, str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for network in arguments.networks:
            for algorithm, loss in losses(solver(network, arguments.threads, folder)).items():
                worst[algorithm] = max(worst.get(algorithm, (0.0, "")), (loss, network))
            console.print(f"{network}: {len(worst)} algorithm(s) so far")
    if arguments.all:
        for entry in softneuro.registry():
            worst.setdefault(algorithm_of(entry["descriptor"]), (1.0, "-"))
    header = ["algorithm", "time without it", "network"]
    texts = {name: "no plan" if math.isinf(loss) else f"{loss:.3f}x" for name, (loss, _) in worst.items()}
    rows = [[name, texts[name], network] for name, (_, network) in sorted(worst.items())]
    console.print(figures("What leaving an algorithm out costs at most", header, rows))


if __name__ == "__main__":
    main()
