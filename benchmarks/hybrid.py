"""Float networks that softneuro runs partly in bytes, against floats, all in bytes, and others' quantized files.

The tables of the SoftNeuro paper anew: its Table I (times without tuning, in float32, in qint8, hybrid), Table III
(what is chosen layer by layer, with --layers) and Table IV (what tuning takes). All ways are calibrated on the same
crops of scikit-learn's two photos. Networks have random weights, so errors are relative L2 of outputs to the float
model on crops that nothing was chosen by; in brackets behind each time. Times are medians of runs that alternate.

untuned: routines by rules. float32: tuned. qint8: ONNX Runtime's QDQ file, through softneuro. onnxruntime, openvino:
the same file there. hybrid: the fastest plan that errs no more than the more exact of these two; hybrid 2x: twice.

python -m benchmarks.hybrid vgg16 resnet18 --layers --plot front.svg
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from rich.console import Console
from sklearn.datasets import load_sample_images

import softneuro.torch_backend
from benchmarks import models, record
from benchmarks.accuracy import apart
from benchmarks.networks import measure, set_up
from benchmarks.peers import Runner, openvino_runner, session_options, session_runner
from benchmarks.peers import softneuro as own
from benchmarks.quantized_files import quantized_file
from benchmarks.steps import step
from benchmarks.tables import figures
from softneuro import providers
from softneuro.error_measure import relative_error
from softneuro.torch_backend import registry

NETWORKS = [
    "vgg16",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "googlenet",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "efficientnet_b0",
]
CHOOSING, PROVING = 12, 4  # batches
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def crops(size: int, count: int, seed: int) -> list[torch.Tensor]:
    """Parts of the photos, normalised as networks are trained: [1, 3, size, size]."""
    photos = [torch.from_numpy(np.array(photo)).float() / 255 for photo in load_sample_images().images]
    random = np.random.default_rng(seed)
    batches = []
    for number in range(count):
        photo = photos[number % len(photos)]
        top, left = (int(random.integers(0, extent - size + 1)) for extent in photo.shape[:2])
        part = photo[top : top + size, left : left + size]
        part = (part - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
        batches.append(part.permute(2, 0, 1).unsqueeze(0).contiguous())
    return batches


def worst(run: Runner, model: torch.nn.Module, batches: list[torch.Tensor]) -> float:
    """Relative L2 to the float model."""
    return max(relative_error(run(x).numpy(), model(x).numpy()) for x in batches)


def hybrid(
    model: torch.nn.Module, batches: list[torch.Tensor], limit: float, pareto: bool
) -> tuple[Runner, softneuro.torch_backend.Tuned, float]:
    """The model within a limit; what was tried; seconds of calibrating and tuning."""
    compiled: Runner = torch.compile(apart(model), backend="softneuro")
    start = time.perf_counter()
    tuned = softneuro.torch_backend.tune(compiled, batches, num_batches=len(batches), max_error=limit, pareto=pareto)
    return compiled, tuned, time.perf_counter() - start


def chosen_layers() -> list[str]:
    """What the regions alive run that were tuned last."""
    region = registry.all_regions()[-1]
    plans = [shaped.plan for shaped in region.shaped.values() if shaped.plan is not None]
    return [f"{layer.name}: {layer.descriptor}" for plan in plans[-1:] for layer in plan.layers if layer.descriptor]


def draw(path: Path, fronts: dict[str, list[Any]]) -> None:
    """Error over time, a line for each network; what kind of picture is said by the file's name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    for network, front in fronts.items():
        floats = max(trial.seconds for trial in front)
        points = [(trial.seconds / floats, max(trial.error, 1e-7)) for trial in front]
        ax.plot(*zip(*points, strict=True), marker="o", label=network)
    ax.set(xlabel="time, of the slowest plan's", ylabel="relative L2 error", yscale="log")
    ax.grid(visible=True, which="both", alpha=0.3)
    ax.legend()
    figure.savefig(path)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="per network (default: %(default)s)")
    parser.add_argument("--size", type=int, default=0, help="of images (default: what a network was made for)")
    parser.add_argument("--layers", action="store_true", help="print what is chosen for each layer")
    parser.add_argument("--plot", type=Path, help="draw the fronts of time and error into this file")
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    torch.set_num_threads(arguments.threads)
    console = Console(width=max(Console().width, 160))
    ways = ["untuned", "float32", "qint8", "onnxruntime", "openvino", "hybrid", "hybrid 2x"]
    header = ["network", *(f"{way} ms" for way in ways), "calibrate + tune s"]
    rows, fronts = [], {}
    for network in arguments.networks:
        model, example = models.build(network, arguments.size)
        size = example.shape[-1]
        choosing, proving = crops(size, CHOOSING, 0), crops(size, PROVING, 1)
        with tempfile.TemporaryDirectory() as folder:
            with step(console, f"{network}: quantized by ONNX Runtime's tools"):
                path = quantized_file(model, choosing, Path(folder))
            settings = session_options(arguments.threads)
            makers: dict[str, Callable[[], Runner]] = {
                "untuned": lambda m=model, x=example: own(apart(m), x, arguments.threads, tune="off", never_worse="0"),
                "float32": lambda m=model, x=example: own(apart(m), x, arguments.threads),
                "qint8": lambda p=path, s=settings: session_runner(providers.session(p, s)),
                "onnxruntime": lambda p=path, s=settings: session_runner(
                    onnxruntime.InferenceSession(p, s, providers=["CPUExecutionProvider"])
                ),
                "openvino": lambda p=path: openvino_runner(p, arguments.threads),
            }
            runners = set_up(makers, example, console)
            errors = {way: worst(run, model, proving) for way, (run, *_) in runners.items()}
            limit = min(errors[way] for way in ("onnxruntime", "openvino") if way in errors)
            took = []
            for way, factor in (("hybrid", 1), ("hybrid 2x", 2)):
                with step(console, f"{network}: {way}, within {factor * limit:.1e}"):
                    run, tuned, seconds = hybrid(model, choosing, factor * limit, bool(arguments.plot))
                runners.update(set_up({way: lambda r=run: r}, example, console))
                errors[way] = worst(run, model, proving)
                fronts[network] = tuned.front
                took.append(seconds)
                if arguments.layers:
                    console.print(*chosen_layers(), sep="\n", highlight=False)
            medians = measure(runners, example, arguments.seconds)
        cells = [f"{medians[way]:.2f} ({errors[way]:.1e})" if way in medians else "-" for way in ways]
        rows.append([network, *cells, " + ".join(f"{seconds:.0f}" for seconds in took)])
        console.print(figures(f"batch 1, {arguments.threads} threads", header, rows))
    if arguments.plot:
        draw(arguments.plot, fronts)
    if arguments.record:
        record.write("hybrid", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
