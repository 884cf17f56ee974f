"""Peak memory of a process that runs a network: softneuro's against eager's and against torch.compile's own.

Each case is a process of its own, run twice: what counts is the second, with the measured costs on disk. In brackets:
what it takes above eager, as a multiple of the model's weights.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import warnings
from typing import Any

import torch
from rich.console import Console

from benchmarks import models, record
from benchmarks.tables import figures

# Name -> backend and options; None: no torch.compile.
CASES: dict[str, tuple[str, dict[str, Any]] | None] = {
    "eager": None,
    "aot_eager": ("aot_eager", {}),
    "inductor": ("inductor", {}),
    "softneuro": ("softneuro", {}),
    "softneuro, max_memory=0.5": ("softneuro", {"max_memory": 0.5}),
}
MIB = 1 << 20


def run_case(network: str, case: str, threads: int) -> int:
    """Runs the network in this process and returns its peak resident set in bytes."""
    torch.set_num_threads(threads)
    model, example = models.build(network)
    compiled = CASES[case]
    if compiled is not None:
        backend, options = compiled
        if backend == "inductor":
            from torch._inductor import config

            config.freezing = True
        model = torch.compile(model, backend=backend, **({"options": options} if options else {}))
    with torch.no_grad():
        for _ in range(5):
            model(example)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="?", default="resnet50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--case", choices=CASES, help="only this one, in this process: prints bytes")
    record.add_option(parser)
    arguments = parser.parse_args()
    if arguments.case:
        warnings.filterwarnings("ignore")
        print(run_case(arguments.network, arguments.case, arguments.threads))
        return

    def peak(case: str) -> int:
        command = [sys.executable, "-m", "benchmarks.memory", arguments.network, "--case", case]
        done = subprocess.run(
            [*command, "--threads", str(arguments.threads)], stdout=subprocess.PIPE, text=True, check=True
        )
        return int(done.stdout.split()[-1])

    model, _ = models.build(arguments.network)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    peaks = {case: [peak(case) for _ in range(2)][-1] for case in CASES}
    above = {case: bytes_ - peaks["eager"] for case, bytes_ in peaks.items()}
    rows = [
        [case, f"{peaks[case] / MIB:.0f}", f"{above[case] / MIB:.0f}", f"{above[case] / weights:.2f}"] for case in CASES
    ]
    title = f"{arguments.network}: {weights / MIB:.0f} MiB of weights, {arguments.threads} threads"
    Console().print(figures(title, ["process", "peak MiB", "above eager MiB", "x weights"], rows))
    if arguments.record:
        cells = [f"{total} ({times})" for _, total, _, times in rows]
        header = ["network", "weights MiB", *(f"{case} MiB" for case in CASES)]
        record.write("memory", sys.argv[1:], header, [[arguments.network, f"{weights / MIB:.0f}", *cells]])


if __name__ == "__main__":
    main()
