"""Pruned networks: plans that use zeros against the best that do not, and against peers, on the same weights.

Contenders run by turns in one process, measured as in benchmarks.networks. `dense` is softneuro's best plan without
routines that use zeros, `dsconv` the best with them but without pairs of convolutions in one pass, `fused` the best of
all, as tuning finds it by itself. Figures are median milliseconds over all runs, and over seeds. In brackets: how many
times as fast `fused` is. Best peer: the same for the fastest of the peers. MiB: a plan's peak, with packed weights,
inputs and outputs. Error: relative L2 of `fused` to eager.

A network ends in large results here, which allocators give back to the system and get anew, page by page: all
contenders alike keep what they have been given.

python -m benchmarks.sparse synthetic resnet34 --zeros 90 95 --threads 2 --csv sparse.csv --plot sparse.svg
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import logging
import statistics
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

import softneuro
from benchmarks import peers, pruned, record
from benchmarks.layers import compile_and_capture
from benchmarks.networks import measure, set_up
from benchmarks.shut_out import is_pair, is_sparse, plan_without
from benchmarks.sparse_plot import plot
from benchmarks.tables import figures
from softneuro.error_measure import relative_error

OWN = ["dense", "dsconv", "fused"]
PEERS = ["onnxruntime", "openvino", "inductor"]
MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """A pruned network, and how many threads run it."""

    network: str
    way: str
    zeros: float  # per cent
    threads: int


@dataclass(frozen=True)
class Figure:
    """One contender in one case."""

    network: str
    way: str
    zeros: float
    threads: int
    seed: int
    contender: str
    ms: float
    peak_mib: float | None = None  # softneuro's plans state it
    error: float | None = None

    @property
    def case(self) -> Case:
        return Case(self.network, self.way, self.zeros, self.threads)


def keep_freed_memory() -> None:
    """Tells the C library to give nothing back to the system, and to take all from the heap."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def own_nets(model: torch.nn.Module, example: torch.Tensor, threads: int) -> dict[str, softneuro.Net]:
    """softneuro's contenders, prepared."""
    _, regions = compile_and_capture(model, example)
    torch.compiler.reset()
    if len(regions) != 1:
        raise softneuro.Error(f"the network is {len(regions)} regions, not one")
    graph, best = regions[0].graph, regions[0].plan
    plans = {
        "dense": plan_without(graph, is_sparse, threads),
        "dsconv": plan_without(graph, is_pair, threads),
        "fused": best,
    }
    return {name: softneuro.Net(graph, plan, threads=threads) for name, plan in plans.items()}


def net_runner(net: softneuro.Net) -> peers.Runner:
    return lambda x: torch.from_numpy(net.run([x.numpy()])[0])


def run_case(
    case: Case, seed: int, others: Sequence[str], console: Console, *, seconds: float, fc: bool = False, size: int = 0
) -> list[Figure]:
    """Measures all contenders, those first that are softneuro's."""
    torch.set_num_threads(case.threads)
    torch.compiler.reset()
    model, example = pruned.build(case.network, case.zeros / 100, way=case.way, seed=seed, fc=fc, size=size)
    nets = own_nets(model, example, case.threads)
    ways: dict[str, Callable[[], peers.Runner]] = {name: partial(net_runner, net) for name, net in nets.items()}
    ways |= {peer: partial(peers.runner, peer, model, example, case.threads) for peer in others}
    runners = set_up(ways, example, console)
    medians = measure(runners, example, seconds)
    expected = model(example)

    def figure(contender: str) -> Figure:
        peak = nets[contender].stats["peak_bytes"] / MIB if contender in nets else None
        error = relative_error(runners[contender][0](example), expected)
        return Figure(**asdict(case), seed=seed, contender=contender, ms=medians[contender], peak_mib=peak, error=error)

    return [figure(contender) for contender in medians]


@dataclass(frozen=True)
class Summary:
    """A case over its seeds, by contender."""

    case: Case
    ms: dict[str, float]
    peak_mib: dict[str, float]
    error: float  # the worst of `fused`

    @property
    def best_peer(self) -> float | None:
        """How many times as fast as the fastest of the peers."""
        found = [ms for contender, ms in self.ms.items() if contender not in OWN]
        return min(found) / self.ms["fused"] if found else None


def summarise(measured: Iterable[Figure]) -> list[Summary]:
    """Cases in the order in which they were measured."""
    by_case: dict[Case, list[Figure]] = {}
    for figure in measured:
        by_case.setdefault(figure.case, []).append(figure)
    summaries = []
    for case, found in by_case.items():
        names = dict.fromkeys(figure.contender for figure in found)
        ms = {name: statistics.median(f.ms for f in found if f.contender == name) for name in names}
        peaks = {name: max(f.peak_mib or 0 for f in found if f.contender == name) for name in names if name in OWN}
        error = max(f.error or 0 for f in found if f.contender == "fused")
        summaries.append(Summary(case, ms, peaks, error))
    return summaries


def rows_of(summaries: Iterable[Summary], others: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The table that is shown."""
    contenders = [name for name in [*OWN, *others] if name != "fused"]
    header = ["network", "pruned by", "threads", "zeros", "fused ms", *(f"{name} ms" for name in contenders)]
    header += ["best peer", *(f"{name} MiB" for name in OWN), "error"]
    rows = []
    for summary in summaries:
        case, ours = summary.case, summary.ms["fused"]
        times = (summary.ms.get(name) for name in contenders)
        rows.append(
            [
                case.network,
                case.way,
                str(case.threads),
                f"{case.zeros:g} %",
                f"{ours:.2f}",
                *(f"{ms:.2f} ({ms / ours:.2f})" if ms else "-" for ms in times),
                f"{summary.best_peer:.2f}" if summary.best_peer else "-",
                *(f"{summary.peak_mib[name]:.0f}" for name in OWN),
                f"{summary.error:.1e}",
            ]
        )
    return header, rows


def recorded(summaries: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """A row for a network: milliseconds of `fused`, and how many times as fast as `dense` and the best peer it is."""
    densities = sorted({summary.case.zeros for summary in summaries})
    rows: dict[str, dict[float, str]] = {}
    for summary in summaries:
        case, ours = summary.case, summary.ms["fused"]
        ratios = [summary.ms["dense"] / ours, *([summary.best_peer] if summary.best_peer else [])]
        cell = f"{ours:.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})"
        rows.setdefault(f"{case.network}, {case.way}, {case.threads}", {})[case.zeros] = cell
    header = ["network, pruned by, threads", *(f"{zeros:g} % ms" for zeros in densities)]
    return header, [[name, *(cells.get(zeros, "-") for zeros in densities)] for name, cells in rows.items()]


def write_csv(path: Path, measured: Sequence[Figure]) -> None:
    """A line for each contender, case and seed."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(Figure.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(figure) for figure in measured)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    networks = pruned.NETWORKS
    parser.add_argument("networks", nargs="*", default=networks, help=f"default: {' '.join(networks)}")
    parser.add_argument("--zeros", type=float, nargs="+", default=pruned.ZEROS, help="per cent (default: %(default)s)")
    parser.add_argument(
        "--ways", nargs="+", choices=pruned.WAYS, default=pruned.WAYS, help="of pruning (default: both)"
    )
    parser.add_argument("--seeds", type=int, choices=range(1, 6), default=1, help="1 to 5 (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: %(default)s")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma list (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="per case (default: %(default)s)")
    parser.add_argument("--fc", action="store_true", help="prune fully connected layers, too")
    parser.add_argument("--size", type=int, default=0, help="of images (default: what a network was made for)")
    parser.add_argument("--quick", action="store_true", help="one small network at 95 %%, to see that all of it works")
    parser.add_argument("--csv", type=Path, help="also write the figures there, one a line")
    parser.add_argument("--plot", type=Path, help="also draw time over zeros there, a picture or PDF")
    record.add_option(parser)
    arguments = parser.parse_args()
    if unknown := [network for network in arguments.networks if network not in networks]:
        parser.error(f"no network {unknown[0]!r}")
    if arguments.quick:
        arguments.networks, arguments.zeros, arguments.ways = ["synthetic"], [95.0], ["random"]
        arguments.threads, arguments.size, arguments.seconds = arguments.threads[-1:], arguments.size or 200, 0.5
    return arguments


def main() -> None:
    arguments = parse()
    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    keep_freed_memory()
    others = [peer for peer in arguments.peers.split(",") if peer]
    console = Console(width=max(Console().width, 200))  # a table squeezed into 80 columns is unreadable
    measured: list[Figure] = []
    cases = [
        Case(*values) for values in product(arguments.networks, arguments.ways, arguments.zeros, arguments.threads)
    ]
    with torch.no_grad(), Progress(console=console, transient=True) as progress:
        task = progress.add_task("networks", total=len(cases) * arguments.seeds)
        for case, seed in product(cases, range(arguments.seeds)):
            name = f"{case.network}, {case.way}, {case.zeros:g} %, {case.threads} thread(s), seed {seed}"
            progress.update(task, description=name)
            measured += run_case(
                case, seed, others, console, seconds=arguments.seconds, fc=arguments.fc, size=arguments.size
            )
            progress.advance(task)
            if arguments.csv:  # so that a run that ends early has left something
                write_csv(arguments.csv, measured)
    summaries = summarise(measured)
    console.print(figures(f"pruned networks, batch 1, {arguments.seeds} seed(s)", *rows_of(summaries, others)))
    if arguments.plot:
        plot(arguments.plot, measured)
    if arguments.record:
        record.write("sparse", sys.argv[1:], *recorded(summaries))


if __name__ == "__main__":
    main()
