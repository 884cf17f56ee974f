"""The ONNX Runtime door beside its host: making sessions, threads on one session, memory over changing shapes.

python -m benchmarks.sessions resnet50 --threads 2
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from rich.console import Console

from benchmarks import models, record
from benchmarks.tables import figures
from softneuro import providers
from softneuro.error_measure import relative_error

BLOCK_S = 2.0  # of one side, in turn with the other


def settings(threads: int, entries: dict[str, str] | None = None) -> Any:
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = threads
    for key, value in (entries or {}).items():
        made.add_session_config_entry(key, value)
    return made


def cpu_session(path: str, threads: int) -> Any:
    return onnxruntime.InferenceSession(path, settings(threads), providers=["CPUExecutionProvider"])


def compiled(path: str, out: Path, threads: int, packed: bool, embed: bool) -> str:
    entries = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(out),
        "ep.context_embed_mode": "01"[embed],
        "softneuro.context_packed": "01"[packed],
    }
    providers.session(path, settings(threads, entries), never_worse=False)
    return str(out)


def creation(path: str, folder: Path, threads: int, rounds: int) -> dict[str, float]:
    """Seconds, medians of rounds in which every way has its turn. The cost database is warm."""
    providers.session(path, settings(threads), never_worse=False)
    lean = compiled(path, folder / "lean.onnx", threads, packed=False, embed=False)
    full = compiled(path, folder / "full.onnx", threads, packed=True, embed=False)
    one = compiled(path, folder / "one.onnx", threads, packed=False, embed=True)
    ways: dict[str, Callable[[], Any]] = {
        "CPU provider": lambda: cpu_session(path, threads),
        "softneuro, warm database": lambda: providers.session(path, settings(threads), never_worse=False),
        "compiled, with packed weights": lambda: providers.session(full, settings(threads)),
        "compiled, without them": lambda: providers.session(lean, settings(threads)),
        "compiled, without them, in one file": lambda: providers.session(one, settings(threads)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, make in ways.items():
            start = time.perf_counter()
            session = make()
            times[name].append(time.perf_counter() - start)
            del session
    return {name: statistics.median(samples) for name, samples in times.items()}


def throughput(session: Any, feeds: list[Any], expected: list[Any], callers: int) -> tuple[float, int]:
    """Runs per second of all callers together, and how many results were wrong."""
    runs, wrong = [0] * callers, [0] * callers
    end = time.perf_counter() + BLOCK_S

    def call(index: int) -> None:
        while time.perf_counter() < end:
            at = (index + runs[index]) % len(feeds)
            result = session.run(None, feeds[at])[0]
            wrong[index] += int(relative_error(result, expected[at]) > 1e-4)
            runs[index] += 1

    callers_at_work = [threading.Thread(target=call, args=(index,)) for index in range(callers)]
    start = time.perf_counter()
    for thread in callers_at_work:
        thread.start()
    for thread in callers_at_work:
        thread.join()
    return sum(runs) / (time.perf_counter() - start), sum(wrong)


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def memory(runs: int) -> list[float]:
    """Resident megabytes after each tenth of the runs, each with another batch and size."""
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.AdaptiveAvgPool2d(1)
    ).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "net.onnx")
        open_dims = ({0: torch.export.Dim("n"), 2: torch.export.Dim("h", min=4), 3: torch.export.Dim("w", min=4)},)
        example = torch.randn(2, 3, 16, 17)
        torch.onnx.export(net, (example,), path, dynamic_shapes=open_dims, external_data=False, verbose=False)
        session = providers.session(path, tune="off", min_region_size=1)
    random, name, marks = np.random.default_rng(0), session.get_inputs()[0].name, []
    for run in range(1, runs + 1):
        shape = (int(random.integers(1, 9)), 3, int(random.integers(5, 40)), int(random.integers(5, 40)))
        session.run(None, {name: np.ones(shape, np.float32)})
        if run % (runs // 10) == 0:
            marks.append(resident_mb())
    return marks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", nargs="?", default="resnet50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=10000, help="with changing shapes")
    record.add_option(parser)
    arguments = parser.parse_args()
    console = Console()
    model, example = models.build(arguments.network)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(folder / "model.onnx")
        torch.onnx.export(model, (example,), path, dynamo=True, external_data=False, verbose=False)
        made = creation(path, folder, arguments.threads, arguments.rounds)
        console.print(
            figures("", ["making a session", "s"], [[way, f"{seconds:.3f}"] for way, seconds in made.items()])
        )
        ours = providers.session(path, settings(arguments.threads), never_worse=False)
        cpu = cpu_session(path, arguments.threads)
        entry = cpu.get_inputs()[0].name
        feeds = [{entry: torch.randn(example.shape).numpy()} for _ in range(4)]
        expected = [cpu.run(None, feed)[0] for feed in feeds]
        rows = []
        for callers in (1, 4):
            pairs = [[throughput(s, feeds, expected, callers) for s in (ours, cpu)] for _ in range(5)]
            rates = [statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)]
            ratio = statistics.median(pair[0][0] / pair[1][0] for pair in pairs)
            wrong = sum(pair[0][1] for pair in pairs)
            rows.append([str(callers), f"{rates[0]:.1f}", f"{rates[1]:.1f}", f"{ratio:.2f}", str(wrong)])
        console.print(figures("", ["callers", "softneuro, runs/s", "CPU provider", "ratio", "wrong"], rows))
    marks = memory(arguments.runs)
    in_order = ", ".join(f"{mark:.0f}" for mark in marks)
    console.print(f"resident MB over {arguments.runs} runs of changing shapes: {in_order}")
    if arguments.record:
        times = {f"{way} s": f"{seconds:.3f}" for way, seconds in made.items()}
        speeds = {f"{callers} caller(s), x CPU provider": ratio for callers, _, _, ratio, _ in rows}
        rest = {"wrong": str(sum(int(row[-1]) for row in rows)), "MB": f"{min(marks):.0f} to {max(marks):.0f}"}
        recorded = {"network": arguments.network, **times, **speeds, **rest}
        record.write("sessions", sys.argv[1:], list(recorded), [list(recorded.values())])


if __name__ == "__main__":
    main()
