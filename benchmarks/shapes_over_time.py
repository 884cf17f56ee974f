"""Sizes that keep changing: a server's time and memory against its host's, whatever the sequence.

Each side of a case runs in a process of its own, the same calls in the same order, some of one side and some of the
other by turns. Total times are sums over the calls after the first, which tunes; a call's time includes all that is
prepared within it. The case of one fixed size is what more calls would come to.

python -m benchmarks.shapes_over_time --door onnxruntime --case cycle60
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import record
from benchmarks.tables import figures

DOORS = ("onnxruntime", "torch")
CASES = ("fixed", "growing", "cycle60", "cycle300", "random", "zipf", "large_fixed", "large_cycle60", "large_zipf")


def sequence(case: str, calls: int) -> list[int]:
    """A number for each call, from which its sizes follow."""
    random = np.random.default_rng(0)
    case = case.removeprefix("large_")  # the same of larger images
    if case == "fixed":
        return [7] * calls
    if case == "growing":
        return [1 + i % 1000 for i in range(calls)]
    if case.startswith("cycle"):
        kinds = int(case.removeprefix("cycle"))
        return [i % kinds for i in range(calls)]
    if case == "random":
        return [int(n) for n in random.integers(0, 1000, calls)]
    return [int(n) - 1 for n in np.minimum(random.zipf(1.2, calls), 1000)]


def image_shape(number: int, least: int) -> tuple[int, ...]:
    return (1, 3, least + number % 20, least + number // 20)


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20


def decoder(threads: int) -> Any:
    import torch
    from torch import nn

    class Block(nn.Module):
        """One step of decoding, with a cache that grows by one position."""

        def __init__(self, width: int = 64, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down, self.norm = (
                nn.Linear(width, 4 * width),
                nn.Linear(4 * width, width),
                nn.LayerNorm(width),
            )

        def forward(self, x: Any, keys: Any, values: Any) -> Any:
            def split(t: Any) -> Any:
                return t.view(1, 1, self.heads, -1).transpose(1, 2)

            keys = torch.cat([keys, split(self.k(x))], 2)
            values = torch.cat([values, split(self.v(x))], 2)
            weights = (split(self.q(x)) @ keys.transpose(2, 3) * 0.25).softmax(-1)
            read = self.norm(self.out((weights @ values).transpose(1, 2).reshape(1, 1, -1)) + x)
            return self.down(self.up(read).relu()) + read, keys, values

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    return Block().eval()


def convolutions(threads: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1)).eval()


def inputs_of(case: str, number: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(number)
    if case == "growing":
        shapes: list[tuple[int, ...]] = [(1, 1, 64), (1, 4, 1 + number, 16), (1, 4, 1 + number, 16)]
    else:
        shapes = [image_shape(number, 112 if case.startswith("large_") else 24)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def torch_runner(case: str, side: str, threads: int) -> Callable[[list[np.ndarray[Any, Any]]], Any]:
    import torch

    import softneuro.torch_backend  # noqa: F401

    model = decoder(threads) if case == "growing" else convolutions(threads)
    backend = "softneuro" if side == "softneuro" else "aot_eager"
    compiled = torch.compile(model, backend=backend, dynamic=True)

    def run(arrays: list[np.ndarray[Any, Any]]) -> Any:
        with torch.no_grad():
            return compiled(*map(torch.from_numpy, arrays))

    # Dynamo compiles again for sizes of one and for equal ones, which is its own matter.
    for number in (3, 4, 25, 0, 21, 139, 850, 999):
        run(inputs_of(case, number))
    return run


def onnxruntime_runner(case: str, side: str, threads: int) -> Callable[[list[np.ndarray[Any, Any]]], Any]:
    import onnxruntime
    import torch

    from softneuro import providers

    model = decoder(threads) if case == "growing" else convolutions(threads)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        example = tuple(map(torch.from_numpy, inputs_of(case, 25)))
        names = [f"in{i}" for i in range(len(example))]
        axes: dict[str, Any] = {"in1": {2: "t"}, "in2": {2: "t"}} if case == "growing" else {"in0": {2: "h", 3: "w"}}
        torch.onnx.export(model, example, path, input_names=names, dynamic_axes=axes, dynamo=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        if side == "softneuro":
            session = providers.session(path, settings)
        else:
            session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def run(arrays: list[np.ndarray[Any, Any]]) -> Any:
        return session.run(None, dict(zip(names, arrays, strict=True)))

    run(inputs_of(case, 25))
    return run


CHUNK = 50  # calls of one side before the other's turn


def serve(door: str, case: str, side: str, calls: int, threads: int) -> None:
    """What one side's process does: calls for each line that it is sent, and prints their times and its memory."""
    runner = torch_runner if door == "torch" else onnxruntime_runner
    run = runner(case, side, threads)
    before = resident_mib()
    numbers = iter(sequence(case, calls))
    print("ready", flush=True)
    for _ in sys.stdin:
        times = []
        for number in itertools.islice(numbers, CHUNK):
            arrays = inputs_of(case, number)
            start = time.perf_counter()
            run(arrays)
            times.append(time.perf_counter() - start)
        print(json.dumps({"times": times, "grown": resident_mib() - before}), flush=True)


def measure(door: str, case: str, calls: int, threads: int) -> list[dict[str, float]]:
    """Of the host and of softneuro, in this order: total and worst seconds of the calls, MiB that it has grown."""
    with tempfile.TemporaryDirectory() as cache, contextlib.ExitStack() as stack:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "SOFTNEURO_CACHE_DIR": cache}
        command = [sys.executable, "-m", "benchmarks.shapes_over_time", "--door", door, "--case", case]
        command += ["--calls", str(calls), "--threads", str(threads), "--serve"]
        sides = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, side], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
            for side in ("host", "softneuro")
        ]  # fmt: skip
        for side in sides:
            _answer(side)
        times: list[list[float]] = [[], []]
        grown = [0.0, 0.0]
        while len(times[0]) < calls:
            for index, side in enumerate(sides):
                assert side.stdin is not None
                side.stdin.write("go\n")
                side.stdin.flush()
                answer = json.loads(_answer(side))
                times[index] += answer["times"]
                grown[index] = answer["grown"]
        for side in sides:
            side.communicate()
        return [
            {"total": sum(t), "later": sum(t[len(t) // 2 :]), "worst": max(t), "grown": g}
            for t, g in zip(times, grown, strict=True)
        ]


def _answer(side: subprocess.Popen[str]) -> str:
    assert side.stdout is not None
    if not (line := side.stdout.readline()):
        raise RuntimeError(f"{side.args} has ended with {side.wait()}")
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--door", choices=DOORS, action="append", help="all, if none is given")
    parser.add_argument("--case", choices=CASES, action="append", help="all, if none is given")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    record.add_option(parser)
    parser.add_argument("--serve", choices=("softneuro", "host"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    doors, cases = arguments.door or DOORS, arguments.case or CASES
    if arguments.serve:
        serve(doors[0], cases[0], arguments.serve, arguments.calls, arguments.threads)
        return
    header = [
        "door, case",
        "host s",
        "softneuro s",
        "ratio",
        "second half",
        "worst call ms",
        "host MiB",
        "softneuro MiB",
    ]
    table = figures(f"{arguments.calls} calls, {arguments.threads} thread(s)", header)
    rows: list[list[str]] = []
    for door in doors:
        for case in cases:
            host, own = measure(door, case, arguments.calls, arguments.threads)
            row = [
                f"{door}, {case}",
                f"{host['total']:.2f}",
                f"{own['total']:.2f}",
                f"{own['total'] / host['total']:.2f}",
                f"{own['later'] / host['later']:.2f}",
                f"{1e3 * own['worst']:.0f}",
                f"{host['grown']:.0f}",
                f"{own['grown']:.0f}",
            ]
            rows.append(row)
            table.add_row(*row)
    Console(width=140).print(table)
    if arguments.record:
        record.write("shapes_over_time", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
