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
from benchmarks.shape_sequences import CASES, FIRST, inputs_of, model_of, open_axes, sequence
from benchmarks.tables import figures

Runner = Callable[[list[np.ndarray[Any, Any]]], Any]


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20


def torch_runner(case: str, side: str, threads: int) -> Runner:
    import torch

    import softneuro.torch_backend  # noqa: F401

    backend = "softneuro" if side == "softneuro" else "aot_eager"
    return _torch(torch.compile(model_of(case, threads), backend=backend, dynamic=True))


def load_runner(case: str, side: str, threads: int) -> Runner:
    import torch

    import softneuro.torch_backend

    model = model_of(case, threads)
    example = tuple(map(torch.from_numpy, inputs_of(case, 25)))
    open_sizes = [dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for axes in open_axes(case)]
    program = torch.export.export(model, example, dynamic_shapes=tuple(open_sizes))
    return _torch(softneuro.torch_backend.load(program) if side == "softneuro" else program.module())


def _torch(model: Callable[..., Any]) -> Runner:
    import torch

    def run(arrays: list[np.ndarray[Any, Any]]) -> Any:
        with torch.no_grad():
            return model(*map(torch.from_numpy, arrays))

    return run


def onnxruntime_runner(case: str, side: str, threads: int) -> Runner:
    import onnxruntime
    import torch

    from softneuro import providers

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        example = tuple(map(torch.from_numpy, inputs_of(case, 25)))
        names = [f"in{i}" for i in range(len(example))]
        axes = dict(zip(names, open_axes(case), strict=True))
        model = model_of(case, threads)
        torch.onnx.export(model, example, path, input_names=names, dynamic_axes=axes, dynamo=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        if side == "softneuro":
            session = providers.session(path, settings)
        else:
            session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])

    def run(arrays: list[np.ndarray[Any, Any]]) -> Any:
        return session.run(None, dict(zip(names, arrays, strict=True)))

    return run


# torch.export leaves no size open at which a layer would vanish.
NOT_THERE = {("load", "small_then_large")}
RUNNERS = {"onnxruntime": onnxruntime_runner, "torch": torch_runner, "load": load_runner}
CHUNK = 50  # calls of one side before the other's turn


def serve(door: str, case: str, side: str, calls: int, threads: int) -> None:
    """What one side's process does: calls for each line that it is sent, and prints their times and its memory."""
    run = RUNNERS[door](case, side, threads)
    for number in FIRST[case] if door == "torch" else FIRST[case][:1]:
        run(inputs_of(case, number))
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
    """For the host, then for softneuro: total and worst seconds of the calls, MiB that it has grown."""
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
    parser.add_argument("--door", choices=RUNNERS, action="append", help="all, if none is given")
    parser.add_argument("--case", choices=CASES, action="append", help="all, if none is given")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    record.add_option(parser)
    parser.add_argument("--serve", choices=("softneuro", "host"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    doors, cases = arguments.door or RUNNERS, arguments.case or CASES
    if arguments.serve:
        serve(next(iter(doors)), cases[0], arguments.serve, arguments.calls, arguments.threads)
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
            if (door, case) in NOT_THERE:
                continue
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
