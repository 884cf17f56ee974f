"""Runs a network of convolutions with little memory, in a process that has nothing but the core."""

from __future__ import annotations

import re
import resource
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

import softneuro

CHANNELS = [3, 64, 64, 32, 32]
SIZE = 1000
THREADS = 2


def network(zeros: float = 0.95) -> softneuro.Graph:
    """Four 3x3 convolutions with ReLU on a large image: its blobs are large, its weights are not."""
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    blob = graph.input("x", (1, CHANNELS[0], SIZE, SIZE))
    for channels, kernels in pairwise(CHANNELS):
        weight = rng.standard_normal((kernels, channels, 3, 3), dtype=np.float32)
        weight[rng.random(weight.shape) < zeros] = 0
        post = {"activation": "relu"}
        blob = graph.add("conv2d", [blob], weights={"weight": weight}, padding=[1] * 4, post=post)
    graph.output(blob)
    return graph


def main() -> None:
    """Arguments: how many bytes there are on top of what the process has, then a descriptor for each layer."""
    more, *plan = sys.argv[1:]
    status = Path("/proc/self/status").read_text()
    had = 1024 * int(re.findall(r"VmData:\s+(\d+) kB", status)[0])
    resource.setrlimit(resource.RLIMIT_DATA, (had + int(more),) * 2)
    if "torch" in sys.modules:
        sys.exit("torch is imported")
    try:
        graph = network()
        x = np.ones(graph.input_shapes[0], np.float32)
        net = softneuro.Net(graph, plan, threads=THREADS)
        (y,) = net.run([x])
    except softneuro.Error as error:
        print(f"softneuro.Error: {error}")
        return
    print(f"ran: {y.shape}, {bool(0 < y.sum() < np.inf)}")


if __name__ == "__main__":
    main()
