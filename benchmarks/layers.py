"""Where the time of a network goes: each step inside its net against the floor that arithmetic and memory set.

Per step: median time in the running net, its floor (the larger of arithmetic at the FMA peak and bytes at the given
bandwidth) and the difference, which is what better code could save; sorted by that. Then what the steps do not explain:
the whole net's run against the sum of its steps, and the model's call against the net's run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import softneuro
from benchmarks import models
from softneuro import device
from softneuro.torch_backend.call.runtime import RegionRuntime


@dataclass
class Prepared:
    """What the backend made of one region."""

    graph: softneuro.Graph
    plan: softneuro.Plan
    inputs: list[torch.Tensor]


@dataclass
class Row:
    name: str
    shape: str
    descriptor: str
    microseconds: float
    flops: float
    floor: float  # microseconds
    thin: bool = False  # 1x1 and depthwise convolutions, which are most of a mobile network


def compile_and_capture(model: torch.nn.Module, example: torch.Tensor) -> tuple[Callable[..., Any], list[Prepared]]:
    """The compiled model, and each region as it was prepared."""
    graphs: dict[tuple[RegionRuntime, Any], softneuro.Graph] = {}
    original = RegionRuntime.lower

    def lower(self: RegionRuntime, signature: Any, *rest: Any) -> Any:
        lowered = original(self, signature, *rest)
        graphs[self, signature] = lowered.graph
        return lowered

    RegionRuntime.lower = lower
    try:
        # A verdict for the host would hide the net.
        compiled = torch.compile(model, backend="softneuro", options={"never_worse": False})
        compiled(example)
    finally:
        RegionRuntime.lower = original
    captured = []
    for (region, signature), graph in graphs.items():
        if (plan := region.shaped[signature].plan) is not None:
            captured.append(Prepared(graph, plan, [torch.randn(shape) for shape in graph.input_shapes]))
    return compiled, captured


def work_of(layer: dict[str, Any], shape_of: Callable[[int], tuple[int, ...]]) -> tuple[float, float]:
    """FLOP and bytes (inputs, outputs and weights, each once)."""
    out = shape_of(layer["output"])
    weights: dict[str, tuple[int, ...]] = layer["weights"]
    flops = 0.0
    if layer["type"] in ("conv2d", "linear"):
        kernel = weights["weight"]
        flops = 2.0 * math.prod(out) * math.prod(kernel[1:])
    elements = sum(math.prod(shape_of(blob)) for blob in layer["inputs"]) + math.prod(out)
    elements += sum(math.prod(shape) for shape in weights.values())
    return flops, 4.0 * elements


def is_thin(layer: dict[str, Any]) -> bool:
    """Whether the layer is a 1x1 or a depthwise convolution."""
    if layer["type"] != "conv2d":
        return False
    _, channels, *kernel = layer["weights"]["weight"]
    return channels == 1 or kernel == [1, 1]


def rows_of(
    prepared: Prepared, threads: int, gflops: float | None, gbytes: float, rounds: int
) -> tuple[list[Row], float, float]:
    """Each step, the median microseconds of the whole net, and a core's FMA peak in GFLOP/s.

    The peak is taken in turn with the net's runs: the clock of a machine that others use moves by a tenth for minutes.
    """
    net = softneuro.Net(prepared.graph, prepared.plan, threads=threads)
    inputs = [np.ascontiguousarray(tensor.numpy()) for tensor in prepared.inputs]
    net.run(inputs)
    wholes = []
    peaks = []
    profiles: list[list[tuple[int, str, str, float]]] = []
    for _ in range(8):
        for _ in range(max(rounds // 8, 1)):
            start = time.perf_counter()
            net.run(inputs)
            wholes.append(1e6 * (time.perf_counter() - start))
        profiles.append(net.profile(inputs, max(rounds // 8, 1)))
        peaks.append(gflops or device.fma_peak(threads=threads, seconds=0.01) / threads / 1e9)
    peak = statistics.median(peaks)
    layers = prepared.graph.layers()
    with_step = {index for index, *_ in profiles[0]}
    rows = []
    for step, (index, name, descriptor, _) in enumerate(profiles[0]):
        microseconds = 1e6 * statistics.median(profile[step][3] for profile in profiles)
        flops, size, shape, thin = 0.0, 0.0, "", False
        if index >= 0:
            layer = layers[index]
            flops, size = work_of(layer, prepared.graph.shape)
            thin = is_thin(layer)
            for earlier in range(index - 1, -1, -1):  # a fusion does the layers before it that have no step
                if earlier in with_step:
                    break
                flops += work_of(layers[earlier], prepared.graph.shape)[0]
            dims = [prepared.graph.shape(blob) for blob in (layer["inputs"][0], layer["output"])]
            shape = " -> ".join("x".join(map(str, dim[1:])) for dim in dims)
        floor = max(flops / (1e3 * peak), size / (1e3 * gbytes)) / threads
        rows.append(Row(name, shape, descriptor, microseconds, flops, floor, thin))
    return rows, statistics.median(wholes), peak


def call_time(compiled: Callable[..., Any], example: torch.Tensor, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        compiled(example)
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--gflops", type=float, help="FMA peak of a core (default: measured)")
    parser.add_argument(
        "--gbytes", type=float, default=40, help="bytes that a core moves, in GB/s (default: %(default)s)"
    )
    parser.add_argument("--top", type=int, default=30, help="rows shown (default: %(default)s)")
    parser.add_argument("--in-order", action="store_true", help="as the steps run, not by waste")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    console = Console(width=175)
    for network in arguments.networks:
        model, example = models.build(network)
        with torch.no_grad():
            compiled, captured = compile_and_capture(model, example)
            call = call_time(compiled, example, arguments.rounds)
        for number, prepared in enumerate(captured):
            rows, whole, peak = rows_of(
                prepared, arguments.threads, arguments.gflops, arguments.gbytes, arguments.rounds
            )
            total, floor = sum(row.microseconds for row in rows), sum(row.floor for row in rows)
            table = Table(
                title=f"{network}, region {number}, {arguments.threads} thread(s): net {whole:.0f} us, its {len(rows)} "
                f"steps {total:.0f} us, floor {floor:.0f} us; model's call {call:.0f} us"
            )
            for column in ("layer", "shape", "routine", "us", "floor us", "waste us", "GFLOP/s"):
                table.add_column(column, justify="left" if column in ("layer", "shape", "routine") else "right")
            if not arguments.in_order:
                rows.sort(key=lambda row: row.floor - row.microseconds)
            for row in rows[: arguments.top]:
                table.add_row(
                    row.name,
                    row.shape,
                    row.descriptor,
                    f"{row.microseconds:.1f}",
                    f"{row.floor:.1f}",
                    f"{row.microseconds - row.floor:.1f}",
                    f"{row.flops / row.microseconds / 1e3:.1f}" if row.flops else "",
                )
            console.print(table)
            thin = [row for row in rows if row.thin]
            if thin:
                rate = sum(row.flops for row in thin) / sum(row.microseconds for row in thin) / 1e3
                share = 100 * rate / (peak * arguments.threads)
                console.print(f"1x1 and depthwise: {rate:.0f} GFLOP/s, {share:.0f} % of the peak of {peak:.0f} a core")
        torch.compiler.reset()


if __name__ == "__main__":
    main()
