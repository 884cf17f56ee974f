"""What fused routines gain in the network: each against the separate routines of the layers that it covers.

Two plans of the same network, the best one and the best without fused routines, run by turns in one process. A step's
time is a median; conversions between layouts that a plan needs around its steps are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import softneuro
from benchmarks import models, record
from benchmarks.layers import Prepared, compile_and_capture
from benchmarks.shut_out import plan_without

FUSED = ("depthwise_block/", "squeeze_excite/", "conv_pool/", "image_conv/")
Times = dict[int, float]  # median seconds by layer


def times_by_turns(prepared: Prepared, plans: list[softneuro.Plan], threads: int, rounds: int) -> list[Times]:
    nets = [softneuro.Net(prepared.graph, plan, threads=threads) for plan in plans]
    inputs = [np.ascontiguousarray(tensor.numpy()) for tensor in prepared.inputs]
    samples: list[dict[int, list[float]]] = [{} for _ in nets]
    for turn in range(rounds + 1):
        for net, by_layer in zip(nets, samples, strict=True):
            net.run(inputs)
            for layer, _, _, seconds in net.profile(inputs, 3):
                if turn > 0 and layer >= 0:
                    by_layer.setdefault(layer, []).append(seconds)
    return [{layer: statistics.median(values) for layer, values in by_layer.items()} for by_layer in samples]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["mobilenet_v2"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    record.add_option(parser)
    arguments = parser.parse_args()
    header = ["network", "fusions", "fused us", "separate us", "times as fast"]
    rows = []
    torch.set_num_threads(arguments.threads)
    console = Console(width=160)
    for network in arguments.networks:
        model, example = models.build(network)
        with torch.no_grad():
            _, captured = compile_and_capture(model, example)
        for number, prepared in enumerate(captured):
            separate = plan_without(prepared.graph, lambda descriptor: descriptor.startswith(FUSED), arguments.threads)
            fused_times, times = times_by_turns(
                prepared, [prepared.plan, separate], arguments.threads, arguments.rounds
            )
            table = Table(title=f"{network}, region {number}, {arguments.threads} thread(s): microseconds")
            for column in ("layers", "input", "routine", "fused", "separate", "ratio"):
                table.add_column(column, justify="left" if column in ("layers", "input", "routine") else "right")
            sums: dict[str, list[float]] = {}
            layers = prepared.graph.layers()
            for last, entry in enumerate(prepared.plan.layers):
                if not entry.descriptor.startswith(FUSED):
                    continue
                first = max((layer for layer in fused_times if layer < last), default=-1) + 1
                covered = [layer for layer in range(first, last + 1) if layer in times]
                shape = prepared.graph.shape(layers[covered[0]]["inputs"][0])
                pair = [1e6 * fused_times[last], 1e6 * sum(times[layer] for layer in covered)]
                kind = f"{entry.descriptor.split('/')[0]}, maps {'>= 56' if min(shape[2:]) >= 56 else 'below 56'}"
                sums[kind] = [a + b for a, b in zip(sums.get(kind, [0.0, 0.0]), pair, strict=True)]
                names = " + ".join(layers[layer]["name"] for layer in covered)
                routine = entry.descriptor.split("/")[-1]
                ratio = f"{pair[1] / pair[0]:.2f}"
                table.add_row(names, "x".join(map(str, shape[1:])), routine, *(f"{t:.0f}" for t in pair), ratio)
            console.print(table)
            for kind, (fused, apart) in sums.items():
                console.print(f"{kind}: {fused:.0f} us fused, {apart:.0f} us separate, {apart / fused:.2f}x")
                rows.append([network, kind, f"{fused:.0f}", f"{apart:.0f}", f"{apart / fused:.2f}"])
        torch.compiler.reset()
    if arguments.record:
        record.write("fusion", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
