"""Whole networks, softneuro against every peer installed, in interleaved rounds in one process.

Each turn of a peer is one untimed run, which takes the caches and cores back from the peer before it, and then the
timed ones; a pause lets other pools' threads go to sleep first. Figures are median milliseconds over all timed runs. A
peer's in brackets: how many times as fast softneuro through torch.compile is. Best peer: how many times as fast as the
fastest of the others, eager apart, each of softneuro's own columns is. Error: relative L2 to eager in float32 on the
same weights; in brackets eager's own in the type that was asked for. The first call includes tuning, where it finds no
costs on disk, and the comparison with the host.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from benchmarks import models, record
from benchmarks.peers import PEERS, Example, Runner, call, runner
from benchmarks.tables import figures
from softneuro.error_measure import relative_error

NETWORKS = [
    "resnet18",
    "resnet34",
    "resnet50",
    "vgg16",
    "vgg19",
    "inception_v3",
    "googlenet",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "squeezenet1_1",
]


FOR_TRANSFORMERS = ("inductor_unfrozen", "onnxruntime_transformers")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def set_up(
    ways: Mapping[str, Callable[[], Runner]], example: Example, console: Console
) -> dict[str, tuple[Runner, float]]:
    """Each contender's runner and the seconds that making it took; one that cannot run the network is left out."""
    runners: dict[str, tuple[Runner, float]] = {}
    for name, make in ways.items():
        start = time.perf_counter()
        try:
            run = make()
            call(run, example)
        except Exception as error:  # a peer that is not installed or fails must not end the others' run
            console.print(f"[dim]no {name}: {type(error).__name__}: {str(error)[:120]}[/dim]")
            continue
        runners[name] = (run, time.perf_counter() - start)
    return runners


def measure(
    runners: dict[str, tuple[Runner, float]], example: Example, seconds: float, rounds: int = 3
) -> dict[str, float]:
    """Median milliseconds by peer, over so many seconds and at least so many rounds."""
    samples: dict[str, list[float]] = {peer: [] for peer in runners}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, samples.values())) < 3 * rounds:
        for peer, (run, _) in runners.items():
            time.sleep(0.01)  # torch's threads stay awake for 5 to 8 ms
            call(run, example)
            for _ in range(3):
                start = time.perf_counter()
                call(run, example)
                samples[peer].append((time.perf_counter() - start) * 1e3)
    return {peer: statistics.median(times) for peer, times in samples.items()}


def best_peer_ratios(medians: dict[str, float], own: Iterable[str]) -> str:
    """How many times as fast as the fastest other compiler or runtime each of softneuro's ways is."""
    best = min((ms for peer, ms in medians.items() if not peer.startswith("softneuro") and peer != "eager"), default=0)
    return ", ".join(f"{best / medians[peer]:.2f}" for peer in own if peer in medians) if best else "-"


def default_peers(dtype: torch.dtype) -> list[str]:
    """For halves, the peers that run the model as it is, and this project in float32."""
    if dtype != torch.float32:
        return ["eager", "inductor", "softneuro", "softneuro_float32"]
    return [peer for peer in PEERS if peer not in ("softneuro_float32", *FOR_TRANSFORMERS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument(
        "--peers",
        help="comma list (default: all that take the type); softneuro:NAME=VALUE is it with an option",
    )
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="of models and images (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="per network (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    console = Console(width=max(Console().width, 160))  # a table squeezed into 80 columns is unreadable
    dtype = DTYPES[arguments.dtype]
    peers = arguments.peers.split(",") if arguments.peers else default_peers(dtype)
    unknown = [peer for peer in peers if peer.split(":")[0] not in PEERS]
    if unknown or "softneuro" not in peers:
        parser.error(f"--peers: {f'no peer {unknown[0]!r}' if unknown else 'ratios need softneuro among them'}")
    measured: dict[str, dict[str, float]] = {}
    own = [peer for peer in peers if peer.startswith("softneuro")]
    others = [peer for peer in peers if peer not in own]
    header = ["network", *(f"{peer} ms" for peer in [*own, *others]), "best peer", "error", "first call s"]
    rows = []

    with torch.no_grad(), Progress(console=console, transient=True) as progress:
        task = progress.add_task("networks", total=len(arguments.networks))
        for network in arguments.networks:
            progress.update(task, description=network)
            torch.compiler.reset()
            model, image = models.build(network)
            model, example = model.to(dtype), image.to(dtype)
            exact = copy.deepcopy(model).float()(example.float())
            ways = {peer: partial(runner, peer, model, example, arguments.threads) for peer in peers}
            runners = set_up(ways, example, console)
            progress.advance(task)
            if "softneuro" not in runners:
                continue
            medians = measure(runners, example, arguments.seconds)
            ours = medians["softneuro"]
            measured[network] = {**medians, "first_call_s": runners["softneuro"][1]}
            error, eager_error = (
                relative_error(run(example).float(), exact) for run in (runners["softneuro"][0], model)
            )
            measured[network]["error"] = error
            rows.append(
                [
                    network,
                    *(f"{medians[peer]:.2f}" if peer in medians else "-" for peer in own),
                    *(f"{medians[p]:.2f} ({medians[p] / ours:.2f})" if p in medians else "-" for p in others),
                    best_peer_ratios(medians, own),
                    f"{error:.1e}" + (f" ({eager_error:.1e})" if dtype != torch.float32 else ""),
                    f"{runners['softneuro'][1]:.1f}",
                ]
            )
    console.print(figures(f"{arguments.dtype}, batch 1, {arguments.threads} threads", header, rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(measured, indent=1) + "\n")
    if arguments.record:
        record.write("networks", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
