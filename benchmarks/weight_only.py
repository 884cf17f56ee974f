"""Chains of square products with weights of 8 and 4 bits and real activations, as large language models have them.

Weights are int8 with a scale for each output (DequantizeLinear, MatMul), or of 4 or 8 bits with a scale for each block
(MatMulNBits). Contenders run the same file in interleaved rounds in one process, measured as in benchmarks.networks.
Figures are median milliseconds. In brackets: of softneuro, the bytes of weights and scales that it reads in that time,
as a share of what memory serves; of others, how many times as fast softneuro is. At level 4 ONNX Runtime rounds the
activations to bytes; the error is ours, relative L2 from ONNX Runtime without that.

python -m benchmarks.weight_only --rows 1 8
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper
from rich.console import Console
from rich.progress import Progress

from benchmarks import record
from benchmarks.networks import measure, set_up
from benchmarks.peers import Runner, session_options, session_runner
from benchmarks.tables import figures
from softneuro import device, providers
from softneuro.error_measure import relative_error

WEIGHTS = {"int8": (8, 0), "8 bits, blocks of 32": (8, 32), "4 bits, blocks of 32": (4, 32), "4 bits, 128": (4, 128)}


def chain(bits: int, block: int, *, size: int, layers: int, rows: int, level: int) -> tuple[bytes, int]:
    """A model, and the bytes of its weights and scales. Results are about as large as the input."""
    random = np.random.default_rng(0)
    about = 1 / (2**bits * np.sqrt(size / 12))
    nodes: list[Any] = []
    constants: list[Any] = []
    for layer in range(layers):
        names = [f"w{layer}", f"s{layer}"]
        read, made = f"x{layer}", f"x{layer + 1}"
        integers: Any = np.frombuffer(random.bytes(size * size * bits // 8), np.uint8)
        scales: Any = np.full((size, size // block) if block else size, about, np.float32)
        if block:
            integers = integers.reshape(size, size // block, -1)
            sizes = {"K": size, "N": size, "bits": bits, "block_size": block, "accuracy_level": level}
            nodes.append(helper.make_node("MatMulNBits", [read, *names], [made], domain="com.microsoft", **sizes))
        else:
            integers = integers.view(np.int8).reshape(size, size)
            nodes.append(helper.make_node("DequantizeLinear", names, [f"d{layer}"], axis=1))
            nodes.append(helper.make_node("MatMul", [read, f"d{layer}"], [made]))
        constants += [onnx.numpy_helper.from_array(v, n) for v, n in zip((integers, scales), names, strict=True)]
    ends = [helper.make_tensor_value_info(f"x{at}", onnx.TensorProto.FLOAT, (rows, size)) for at in (0, layers)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10
    return bytes(model.SerializeToString()), sum(len(constant.raw_data) for constant in constants)


def host(model: bytes, threads: int, level: int) -> Runner:
    settings = session_options(threads)
    # By itself it rounds the activations of products with dequantized bytes.
    settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", str(level))
    if level == 0:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return session_runner(onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--size", type=int, default=4096, help="of the square products (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=16, help="of a chain (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="per figure (default: %(default)s)")
    record.add_option(parser)
    arguments = parser.parse_args()

    logging.getLogger().setLevel(logging.ERROR)
    console = Console(width=max(Console().width, 120))
    header = ["weights, rows, threads", "softneuro ms", "onnxruntime ms", "onnxruntime level 4 ms", "error"]
    rows = []
    cases = [(name, count, threads) for threads in arguments.threads for name in WEIGHTS for count in arguments.rows]
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("chains", total=len(cases))
        for name, count, threads in cases:
            progress.update(task, description=name)
            sizes = {"size": arguments.size, "layers": arguments.layers, "rows": count}
            models = {level: chain(*WEIGHTS[name], **sizes, level=level) for level in (0, 4)}
            data, size = models[0]

            def own(data: bytes = data, threads: int = threads) -> Runner:
                return session_runner(providers.session(data, session_options(threads), never_worse=False))

            ways: dict[str, Callable[[], Runner]] = {"softneuro": own}
            for level, (model, _) in models.items():
                ways[f"level {level}"] = partial(host, model, threads, level)
            example = torch.randn(count, arguments.size)
            runners = set_up(ways, example, console)
            progress.advance(task)
            if "softneuro" not in runners:
                continue
            medians = measure(runners, example, arguments.seconds)
            ours: Any = medians["softneuro"]
            memory = device.bandwidth("read", "memory", threads, 0.2)
            share = f"{ours:.2f} ({size / (ours * 1e-3) / memory:.0%})"
            cells = [f"{ms:.2f} ({ms / ours:.2f})" if ms else "-" for ms in map(medians.get, ("level 0", "level 4"))]
            exact = runners.get("level 0")
            error = f"{relative_error(runners['softneuro'][0](example), exact[0](example)):.1e}" if exact else "-"
            rows.append([f"{name}, {count}, {threads}", share, *cells, error])
    title = f"{arguments.layers} products by {arguments.size}x{arguments.size}"
    console.print(figures(title, header, rows))
    if arguments.record:
        record.write("weight_only", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
