"""Hugging Face's transformers, softneuro against every peer installed, in interleaved rounds in one process.

Rounds and the columns of peers are those of `benchmarks.networks`: median milliseconds, in brackets how many times as
fast softneuro through torch.compile is; best peer: how many times as fast as the fastest of the others, eager apart,
each of softneuro's own columns is. A name with `+mask` is the network called with its masks.

Error: the largest relative L2 to eager of any output, of each of softneuro's own columns. Peak: the share that
softneuro has of the machine's multiply-adds, as `benchmarks.peak` measures them. What is counted are 2mnk of every
product and convolution, of attention's with all keys. Cold: seconds of the first call, tuned from an empty database.

`--decode` and `--attention` measure other things instead: see `benchmarks.decoding` and `benchmarks.attention`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import attention, decoding, hugging_face, record
from benchmarks.networks import best_peer_ratios, measure, set_up
from benchmarks.peers import PEERS, Example, Runner, call, runner
from benchmarks.tables import figures
from softneuro import available_isas, device
from softneuro.error_measure import relative_error

CONTENDERS = [
    "softneuro",
    "softneuro_exported",
    "softneuro_onnx",
    "eager",
    "inductor",
    "inductor_unfrozen",
    "onnxruntime",
    "onnxruntime_transformers",
    "openvino",
]
QUICK = ["minilm_l6", "llama_160m"]


def error_of(run: Runner, example: Example, expected: Any) -> float:
    """Of the worst output."""
    pairs = zip(hugging_face.tensors(call(run, example)), hugging_face.tensors(expected), strict=True)
    return max(relative_error(ours.float(), theirs.float()) for ours, theirs in pairs)


def operations(name: str, example: Example) -> int:
    """Multiplications and additions of a call. torch counts no fused attention on CPUs, so it is spelt out."""
    model, _ = hugging_face.build(name, attention="eager")
    with FlopCounterMode(display=False) as counter:
        call(model, example)
    return int(counter.get_total_flops())


def peak_of(threads: int) -> float:
    return max(device.fma_peak(isa, threads, 0.2) for isa in available_isas())


@contextmanager
def empty_database(used: bool) -> Iterator[None]:
    """A database of its own, so that nothing is known; or the user's."""
    before = os.environ.get("SOFTNEURO_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        if used:
            os.environ["SOFTNEURO_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("SOFTNEURO_CACHE_DIR", None)
            if before is not None:
                os.environ["SOFTNEURO_CACHE_DIR"] = before


def compare(names: list[str], peers: list[str], arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    own = [peer for peer in peers if peer.startswith("softneuro")]
    others = [peer for peer in peers if peer not in own]
    cold = "first call s" if arguments.warm else "cold s"
    header = ["network", *(f"{peer} ms" for peer in [*own, *others]), "best peer", "error", "peak", cold]
    rows: list[list[str]] = []
    measured: dict[str, Any] = {}
    with torch.no_grad(), Progress(console=console, transient=True) as progress:
        task = progress.add_task("networks", total=len(names))
        for name in names:
            progress.update(task, description=name)
            torch.compiler.reset()
            base, _, mask = name.partition("+")
            model, example = hugging_face.build(base, masked=bool(mask))
            with empty_database(not arguments.warm):
                ways = {peer: partial(runner, peer, model, example, arguments.threads) for peer in peers}
                runners = set_up(ways, example, console)
                progress.advance(task)
                if "softneuro" not in runners:
                    continue
                medians = measure(runners, example, 0, arguments.rounds)
            expected = call(model, example)
            errors = {peer: error_of(runners[peer][0], example, expected) for peer in runners}
            ours, first = medians["softneuro"], runners["softneuro"][1]
            share = operations(base, example) / (ours * 1e-3) / peak_of(arguments.threads)
            measured[name] = {"ms": medians, "error": errors, "peak": share, "first_call_s": first}
            rows.append(
                [
                    name,
                    *(f"{medians[peer]:.2f}" if peer in medians else "-" for peer in own),
                    *(f"{medians[p]:.2f} ({medians[p] / ours:.2f})" if p in medians else "-" for p in others),
                    best_peer_ratios(medians, own),
                    ", ".join(f"{errors[peer]:.0e}" for peer in own if peer in errors),
                    f"{share:.0%}",
                    f"{first:.1f}",
                ]
            )
    console.print(figures(f"float32, batch 1, {arguments.threads} threads", header, rows))
    if arguments.record:
        record.write("transformers", sys.argv[1:], header, rows)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = list(hugging_face.NETWORKS)
    parser.add_argument("--models", help=f"comma list, each may end in +mask (default: {','.join(known)})")
    parser.add_argument("--peers", help="comma list (default: all); softneuro:NAME=VALUE is it with an option")
    parser.add_argument("--rounds", type=int, default=15, help="each times everybody thrice (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm", action="store_true", help="take costs from the user's database")
    parser.add_argument(
        "--quick", action="store_true", help=f"{','.join(QUICK)} and three rounds, if not said otherwise"
    )
    parser.add_argument("--decode", action="store_true", help="the next token of Llama with a static cache, instead")
    parser.add_argument("--int4", action="store_true", help="with --decode: weights of four bits")
    parser.add_argument("--attention", action="store_true", help="attention alone, instead")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    record.add_option(parser)
    arguments = parser.parse_args()
    names = arguments.models.split(",") if arguments.models else QUICK if arguments.quick else known
    peers = arguments.peers.split(",") if arguments.peers else CONTENDERS
    if unknown := [name for name in names if name.removesuffix("+mask") not in known]:
        parser.error(f"--models: no network {unknown[0]!r}")
    unknown = [peer for peer in peers if peer.split(":")[0] not in PEERS]
    if unknown or "softneuro" not in peers:
        parser.error(f"--peers: {f'no peer {unknown[0]!r}' if unknown else 'ratios need softneuro among them'}")
    if arguments.quick and arguments.rounds == parser.get_default("rounds"):
        arguments.rounds = 3

    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    console = Console(width=max(Console().width, 230))  # a table squeezed into 80 columns is unreadable
    if arguments.attention or arguments.decode:
        run, name = (attention.measure, "attention") if arguments.attention else (decoding.measure, "decode")
        if arguments.int4 and arguments.decode:
            run, name = partial(decoding.measure, int4=True), "decode, weights of four bits"
        with empty_database(not arguments.warm):
            measured, header, rows = run(arguments.rounds, arguments.threads, arguments.quick, console)
        console.print(figures(f"{name}, float32, {arguments.threads} threads", header, rows))
        if arguments.record:
            record.write("transformers", sys.argv[1:], header, rows)
    else:
        measured = compare(names, peers, arguments, console)
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
