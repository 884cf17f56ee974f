"""How long a first call takes, and where its time goes, beside `aot_eager`'s own first call.

Each figure comes from a process of its own: one of `aot_eager`, one of softneuro that finds no costs on disk (cold),
and one that finds those of the one before (warm). Seconds of the cold call: Dynamo until it calls the backend; the
backend until it returns (AOT, partitioning); tuning, all regions together; and the rest, which is lowering, preparing
nets and the comparison with the host. Process: the processor's time of the call, which other processes do not lengthen
as they do the others. Measured: costs of routines and conversions. With --stages a second table has tuning's stages.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from benchmarks import models, record
from benchmarks.networks import NETWORKS
from benchmarks.tables import figures

STAGE = re.compile(r"([a-z][a-z0-9_ ]*) ([\d.]+) s \((\d+)\)")
MEASURED = re.compile(r"(\d+) costs measured")


class Stages(logging.Handler):
    """Adds up what tunings log of themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.measured = 0

    def emit(self, message: logging.LogRecord) -> None:
        text = message.getMessage()
        if "tune: stages: " in text:
            for name, seconds, _ in STAGE.findall(text.partition("stages: ")[2]):
                self.seconds[name] += float(seconds)
        elif found := MEASURED.search(text):
            self.measured += int(found[1])


def first_call(network: str, batch: int, backend: str, options: dict[str, str]) -> dict[str, Any]:
    """One first call in this process, and the median of calls after it."""
    model, example = models.build(network, batch=batch)
    stages = Stages()
    if backend == "softneuro":
        logger = logging.getLogger("softneuro")
        logger.addHandler(stages)
        logger.setLevel(logging.INFO)
        options = {"verbose": "2", **options}
    compile_graph = torch._dynamo.lookup_backend(backend)
    entered: list[float] = []
    spent: list[float] = []

    def timed(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        entered.append(time.perf_counter())
        try:
            return compile_graph(graph, inputs, **({"options": options} if backend == "softneuro" else {}))
        finally:
            spent.append(time.perf_counter() - entered[-1])

    compiled = torch.compile(model, backend=timed)
    with torch.no_grad():
        start, cpu = time.perf_counter(), time.process_time()
        compiled(example)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        calls = []
        for _ in range(9):
            again = time.perf_counter()
            compiled(example)
            calls.append(time.perf_counter() - again)
    return {
        "seconds": seconds,
        "process": cpu,
        "dynamo": entered[0] - start,
        "backend": sum(spent),
        "stages": dict(stages.seconds),
        "measured": stages.measured,
        "call_ms": 1e3 * statistics.median(calls),
    }


def in_own_process(words: list[str], backend: str, costs: str) -> Any:
    """What first_call() gives in a fresh process with these arguments."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_calls", *words, "--worker", backend],
        env={**os.environ, "SOFTNEURO_CACHE_DIR": costs},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def row(name: str, eager: dict[str, Any], cold: dict[str, Any], warm: dict[str, Any]) -> list[str]:
    """The table's row for one network."""
    tuning = sum(cold["stages"].values())
    rest = cold["seconds"] - cold["dynamo"] - cold["backend"] - tuning
    seconds = (eager["seconds"], cold["seconds"], warm["seconds"], cold["dynamo"], cold["backend"], tuning, rest)
    own = (cold["process"], warm["process"])
    times = (eager["call_ms"], cold["call_ms"])
    return [name, *(f"{s:.2f}" for s in (*seconds, *own)), str(cold["measured"]), *(f"{ms:.2f}" for ms in times)]


HEADER = ["network", "aot_eager s", "cold s", "warm s", "dynamo s", "backend s", "tuning s", "rest s", "cold process s"]
HEADER += ["warm process s", "measured", "aot_eager call ms", "call ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everything = [*NETWORKS, "bert_base"]
    parser.add_argument("networks", nargs="*", default=everything, help=f"default: {' '.join(everything)}")
    parser.add_argument("--batches", default="1,8", help="comma list (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of softneuro")
    parser.add_argument("--stages", action="store_true", help="also where tuning's time goes")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--worker", choices=["aot_eager", "softneuro"], help=argparse.SUPPRESS)
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    batches = [int(batch) for batch in arguments.batches.split(",")]
    if arguments.worker:
        options = dict(option.split("=", 1) for option in arguments.option)
        torch.set_num_threads(arguments.threads)
        found = first_call(arguments.networks[0], batches[0], arguments.worker, options)
        print(json.dumps(found))
        return
    console = Console(width=max(Console().width, 180))  # a table squeezed into 80 columns is unreadable
    rows, measured = [], {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("first calls", total=len(arguments.networks) * len(batches))
        for network in arguments.networks:
            for batch in batches:
                progress.update(task, description=f"{network}, batch {batch}")
                words = [network, f"--batches={batch}", f"--threads={arguments.threads}"]
                words += [f"--option={option}" for option in arguments.option]
                with tempfile.TemporaryDirectory() as costs:
                    eager, cold, warm = (
                        in_own_process(words, backend, costs) for backend in ("aot_eager", "softneuro", "softneuro")
                    )
                measured[f"{network}, {batch}"] = {"aot_eager": eager, "cold": cold, "warm": warm}
                rows.append(row(f"{network}, {batch}", eager, cold, warm))
                progress.advance(task)
    console.print(figures(f"first calls by network and batch, {arguments.threads} threads", HEADER, rows))
    if arguments.stages:
        names = dict.fromkeys(name for found in measured.values() for name in found["cold"]["stages"])
        cells = [[n, *(f"{found['cold']['stages'].get(n, 0):.2f}" for found in measured.values())] for n in names]
        console.print(figures("seconds of tuning by stage", ["stage", *measured], cells))
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1) + "\n")
    if arguments.record:
        record.write("first_calls", sys.argv[1:], HEADER, rows)


if __name__ == "__main__":
    main()
