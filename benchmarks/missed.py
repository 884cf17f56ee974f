"""Which algorithms networks would miss: each left out alone, and the plan solved anew without it.

An algorithm is a layer type's, whatever its instruction set and params. What leaving it out costs is the predicted time
of the best plan without it over that of the best plan. Substitutes hide each other only where both are left out, so
each is left out alone. What stands in no network's plan costs nothing; --all names it, too.
"""

from __future__ import annotations

import argparse
import re

import torch
from rich.console import Console

import softneuro
from benchmarks import models
from benchmarks.layers import compile_and_capture
from benchmarks.networks import NETWORKS
from benchmarks.shut_out import plan_without
from benchmarks.tables import figures

LEVELS = re.compile(r"_(scalar|avx2|avxvnni|avx512|avx512vnni|amx|neon)$")


def algorithm_of(descriptor: str) -> str:
    """The layer type and the algorithm: 'conv2d/cpu:float32:nchw16c/direct_avx2{rows=9}' is of 'conv2d/direct'."""
    parts = descriptor.partition("{")[0].split("/")
    return f"{parts[0]}/{LEVELS.sub('', parts[-1])}"


def losses(graph: softneuro.Graph, plan: softneuro.Plan, threads: int) -> dict[str, float]:
    """By algorithm of the plan: how many times as long the best plan without it takes; infinite if there is none."""
    found: dict[str, float] = {}
    chosen = (layer.descriptor for layer in plan.layers if layer.descriptor)  # what a fusion covers has none
    for algorithm in sorted(set(map(algorithm_of, chosen))):

        def unwanted(descriptor: str, algorithm: str = algorithm) -> bool:
            return algorithm_of(descriptor) == algorithm

        try:
            without = plan_without(graph, unwanted, threads)
        except softneuro.Error:
            found[algorithm] = float("inf")
        else:
            found[algorithm] = without.predicted_s / plan.predicted_s
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="also the algorithms that no plan has")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    console = Console(width=160)
    worst: dict[str, tuple[float, str]] = {}
    for network in arguments.networks:
        model, example = models.build(network)
        with torch.no_grad():
            _, captured = compile_and_capture(model, example)
        for prepared in captured:
            for algorithm, loss in losses(prepared.graph, prepared.plan, arguments.threads).items():
                worst[algorithm] = max(worst.get(algorithm, (0.0, "")), (loss, network))
        console.print(f"{network}: {len(worst)} algorithm(s) so far")
    if arguments.all:
        for entry in softneuro.registry():
            worst.setdefault(algorithm_of(entry["descriptor"]), (1.0, "-"))
    header = ["algorithm", "time without it", "network"]
    texts = {name: "no plan" if loss == float("inf") else f"{loss:.2f}x" for name, (loss, _) in worst.items()}
    rows = [[name, texts[name], network] for name, (_, network) in sorted(worst.items())]
    console.print(figures("What leaving an algorithm out costs at most", header, rows))


if __name__ == "__main__":
    main()
