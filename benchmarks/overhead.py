"""What a call costs beyond its kernels: a region's op, and the compiled model around it, on nets of next to no work.

Times are microseconds of CPU time of the calling thread, one thread, low quantiles of many short runs: they hold on a
busy machine.
Where it says cold, memory of `--evict` MiB is read and written before each call, as a network's own data would be;
these are medians of single calls, which scatter by some ten microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from torch import nn

import softneuro.torch_backend
from benchmarks import record
from benchmarks.tables import figures
from softneuro.torch_backend import registry

OPTIONS = {"never_worse": False, "tune": "off", "min_region_size": 1}


def quantile_us(run: Callable[[], Any], batches: int, calls: int = 20) -> float:
    """A low quantile of the microseconds of CPU time that a call takes."""
    for _ in range(10 * calls):
        run()
    times = []
    for _ in range(batches):
        start = time.thread_time_ns()
        for _ in range(calls):
            run()
        times.append((time.thread_time_ns() - start) / calls / 1e3)
    return sorted(times)[len(times) // 20]


def cold_us(run: Callable[[], Any], evict: torch.Tensor, calls: int) -> float:
    """The median of the microseconds of CPU time that a call takes which finds the caches full of other things."""
    times = []
    for _ in range(calls):
        evict += 1
        start = time.thread_time_ns()
        run()
        times.append((time.thread_time_ns() - start) / 1e3)
    return statistics.median(times)


def chain(layers: int) -> nn.Module:
    """Pairs of 1x1 convolution and batch normalisation on one channel, then one ReLU."""
    pairs = [module for _ in range(layers) for module in (nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))]
    return nn.Sequential(*pairs, nn.ReLU()).eval()


def measure(layers: int, batches: int, evict: torch.Tensor) -> dict[str, float]:
    """Microseconds by what they are spent on."""
    torch.compiler.reset()
    model, x = chain(layers), torch.randn(1, 1, 2, 2)
    known = registry.all_regions()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    compiled(x)
    (region,) = [r for r in registry.all_regions() if r not in known]
    tensors = {tensor.data_ptr(): tensor for tensor in (*model.parameters(), *model.buffers())}
    weights = [tensors[address] for address in region.weights.addresses()]
    op = torch.ops.softneuro.run_region.default
    lowered = region.lower(region.signature([x], []), [x], weights, [])
    net = softneuro.Net(lowered.graph, next(iter(region.shaped.values())).plan)
    kernels = min(sum(step[3] for step in net.profile([x.numpy()], 200)) for _ in range(5)) * 1e6
    loaded = softneuro.torch_backend.load(torch.export.export(model, (x,)), **OPTIONS)
    loaded(x)
    return {
        "weights": len(weights),
        "op": quantile_us(lambda: op(region.handle, [x], weights, []), batches),
        "kernels": kernels,
        "compiled": quantile_us(lambda: compiled(x), batches),
        "compiled, cold": cold_us(lambda: compiled(x), evict, batches),
        "exported": quantile_us(lambda: loaded(x), batches),
        "exported, cold": cold_us(lambda: loaded(x), evict, batches),
        "eager": quantile_us(lambda: model(x), max(batches // 10, 10)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", type=int, default=[0, 1, 20, 53], help="default: %(default)s")
    parser.add_argument(
        "--batches", type=int, default=400, help="of 20 calls, of one where cold (default: %(default)s)"
    )
    parser.add_argument("--evict", type=int, default=40, help="MiB (default: %(default)s)")
    record.add_option(parser)
    arguments = parser.parse_args()
    evict = torch.zeros(arguments.evict * 2**20 // 4)
    torch.set_num_threads(1)
    timed = ["compiled", "compiled, cold", "exported", "exported, cold", "eager"]
    header = ["layers", "weights", "op", "kernels in it", "op beyond kernels", *timed]
    rows = []
    with torch.no_grad():
        for layers in arguments.layers:
            found = measure(layers, arguments.batches, evict)
            times = [found["op"], found["kernels"], found["op"] - found["kernels"], *(found[name] for name in timed)]
            rows.append([str(layers), str(int(found["weights"])), *(f"{us:.1f}" for us in times)])
    console = Console(width=max(Console().width, 130))
    console.print(figures("CPU time per call in us, one thread", header, rows))
    console.print("The rest of a compiled model's time is Dynamo's guards and AOT Autograd's wrapper.")
    if arguments.record:
        record.write("overhead", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
