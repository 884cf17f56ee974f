"""What each way to run a network costs in accuracy, and what it saves in time: cross-validation over all digits.

For each fold a network is trained on the other folds and answers those that were held back, so that each of the 1797
images is answered once by a network that has not seen it. Accuracy is that of all these answers. Lost and gained:
images that float32 alone, and that the variant alone gets right. Difference: in points of accuracy to float32, with its
95 % interval for paired answers, by Tango's score. Milliseconds are for a batch, medians of runs that alternate as in
benchmarks.networks; of these, and of their ratios to float32's, the median over folds is shown.

Trained weights are kept, and taken again as long as the sources that make them are the same.

python -m benchmarks.accuracy --networks resnet vit --folds 5
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import math
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

import softneuro.torch_backend
from benchmarks import digit_networks, digits, record
from benchmarks.networks import measure
from benchmarks.peers import Runner, session_options, session_runner
from benchmarks.steps import Update, step
from benchmarks.tables import figures
from softneuro import _C, providers

BATCH = 32
CALIBRATING = 32  # batches
# A variant makes what is measured of a trained model, and of training images with their labels to calibrate by.
Variant = Callable[[nn.Module, torch.Tensor, torch.Tensor], Runner]


def apart(model: nn.Module) -> nn.Module:
    """A copy with code of its own. Dynamo shares what it compiles among models of the same code."""

    class Apart(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = copy.deepcopy(model)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.model(x)
            return out

    Apart.forward.__code__ = Apart.forward.__code__.replace()
    return Apart().eval()


def float32(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Runner:
    return model


def compiled(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Runner:
    run: Runner = torch.compile(apart(model), backend="softneuro")
    return run


def batches(images: torch.Tensor) -> list[torch.Tensor]:
    """All of one shape, none filled up."""
    return list(images[: len(images) // BATCH * BATCH].split(BATCH))


def qint8(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Runner:
    """All in bytes, by ONNX Runtime's tools."""
    from benchmarks.quantized_files import quantized_file

    with tempfile.TemporaryDirectory() as folder:
        path = quantized_file(model, batches(images)[:CALIBRATING], Path(folder))
        run: Runner = session_runner(providers.session(path, session_options(torch.get_num_threads())))
    return run


def tuned(**budget: Any) -> Variant:
    """By softneuro's choice within a budget, which is `max_error`, or `max_drop` of accuracy on the training images.

    What else is given is for `tune`.
    """

    def variant(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Runner:
        run = compiled(model, images, labels)
        judge: dict[str, Any] = {"evaluate": lambda other: right(other, images, labels).double().tolist()}
        given = judge if "max_drop" in budget else {}
        softneuro.torch_backend.tune(run, batches(images), num_batches=CALIBRATING, **given, **budget)
        return run

    return variant


# The first is what the others are compared with.
VARIANTS: dict[str, Variant] = {
    "float32": float32,
    "softneuro": compiled,
    "qint8": qint8,
    "max_drop 0": tuned(max_drop=0.0),
    "max_drop 0.5": tuned(max_drop=0.005),
    "max_drop 1": tuned(max_drop=0.01),
}
# They are measured if --variants asks for them.
OTHERS: dict[str, Variant] = {"max_error 0.01": tuned(max_error=0.01)}


def right(run: Runner, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Which images are recognised, in batches of one shape: the last is filled up with images that do not count."""
    filled = torch.cat([images, images[: -len(images) % BATCH]])
    answers = torch.cat([run(batch).argmax(1) for batch in filled.split(BATCH)])
    return answers[: len(images)] == labels


def interval(gained: int, lost: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Of the difference (gained - lost) / count between the rates of two raters of the same samples.

    The score interval of Tango, "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design" (1998). It is of use where few answers differ, or none.
    """
    z = statistics.NormalDist().inv_cdf((1 + level) / 2)

    def too_far(difference: float) -> bool:
        """Whether the score test rejects it."""
        linear = -gained - lost + (2 * count - gained + lost) * difference
        constant = -lost * difference * (1 - difference)
        root = math.sqrt(max(linear**2 - 8 * count * constant, 0))
        rate = max(root - linear, 0) / (4 * count)  # of those lost, if this were the difference
        variance = count * (2 * rate + difference * (1 - difference))
        return (gained - lost - count * difference) ** 2 > z**2 * max(variance, 0)

    found = (gained - lost) / count
    ends = []
    for far in (-1.0, 1.0):
        inside, outside = found, far
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if too_far(middle) else (middle, outside)
        ends.append(inside)
    return ends[0], ends[1]


@dataclass
class Result:
    """A variant of a network over all folds."""

    right: torch.Tensor  # by image that was answered
    ms: list[float] = field(default_factory=list)  # by fold


def source_key() -> str:
    """Of all that makes weights."""
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in (digits, digit_networks))
    return hashlib.sha256(sources).hexdigest()[:12]


def trained(network: str, k: int, folds: int, folder: Path, update: Update) -> nn.Module:
    """From the folder, if it is there."""
    path = folder / f"{network}-{k}-of-{folds}-{source_key()}.pt"
    model = digit_networks.NETWORKS[network].build().eval()
    if path.exists():
        model.load_state_dict(torch.load(path, weights_only=True))
        return model
    images, labels, _, _ = digits.fold(k, folds)
    with torch.enable_grad():
        model = digit_networks.trained(network, images, labels, update)
    folder.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(f".{os.getpid()}")
    torch.save(model.state_dict(), whole)
    whole.replace(path)  # nobody reads half a file
    return model


def measure_folds(
    models: Sequence[nn.Module], variants: Mapping[str, Variant], seconds: float, update: Update, folds: int = 0
) -> dict[str, Result]:
    """Answers and times of each variant, of which each fold's model is given: all of them, or the first of so many."""
    count, folds = len(digits.everything()[0]), folds or len(models)
    results = {name: Result(torch.zeros(count, dtype=torch.bool)) for name in variants}
    answered = torch.zeros(count, dtype=torch.bool)
    for k, (model, held_back) in enumerate(zip(models, digits.held_back(folds), strict=False)):
        torch.compiler.reset()  # Dynamo gives up on what it has compiled too often
        images, labels, test_images, test_labels = digits.fold(k, folds)
        answered[held_back] = True
        runners: dict[str, tuple[Runner, float]] = {}
        for name, variant in variants.items():
            run = variant(model, images, labels)
            results[name].right[held_back] = right(run, test_images, test_labels)
            runners[name] = (run, 0.0)
        for name, ms in measure(runners, test_images[:BATCH], seconds).items():
            results[name].ms.append(ms)
        update(k + 1, len(models))
    return {name: Result(result.right[answered], result.ms) for name, result in results.items()}


def rows_of(network: str, results: Mapping[str, Result]) -> list[list[str]]:
    """A row for each variant, the first of which the others are compared with."""
    base = next(iter(results.values()))
    rows = []
    for name, result in results.items():
        count = len(result.right)
        gained, lost = int((result.right & ~base.right).sum()), int((~result.right & base.right).sum())
        low, high = (f"{100 * end:+.2f}" for end in interval(gained, lost, count))
        ratio = statistics.median(before / ms for before, ms in zip(base.ms, result.ms, strict=True))
        itself = result is base
        rows.append(
            [
                f"{network}, {name}",
                f"{100 * float(result.right.double().mean()):.2f} %",
                "-" if itself else f"{lost}, {gained}",
                "-" if itself else f"{100 * (gained - lost) / count:+.2f} ({low} to {high})",
                f"{statistics.median(result.ms):.2f}",
                "-" if itself else f"{ratio:.2f}",
            ]
        )
    return rows


HEADER = ["network, variant", "accuracy", "lost, gained", "difference", "ms", "times faster"]


def main() -> None:
    known, ways = digit_networks.NETWORKS, {**VARIANTS, **OTHERS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--networks", nargs="+", choices=known, default=list(known), metavar="NETWORK", help=", ".join(known)
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=ways,
        default=list(VARIANTS),
        metavar="VARIANT",
        help=", ".join(map(repr, ways)),
    )
    parser.add_argument("--folds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--first", type=int, help="of the folds, to see sooner what comes out (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3, help="per network and fold (default: %(default)s)")
    parser.add_argument("--weights", type=Path, help="where trained weights are kept (default: with measured costs)")
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    console = Console(width=max(Console().width, 140))
    folder = arguments.weights or Path(_C.CostDb.default_directory()) / "digits"
    variants = {name: ways[name] for name in dict.fromkeys(["float32", *arguments.variants])}
    first = min(arguments.first or arguments.folds, arguments.folds)
    rows = []
    with torch.no_grad():
        for network in arguments.networks:
            models: list[nn.Module] = []
            with step(console, f"  {network}: training", f"once, some {40 * first} s") as update:
                for k in range(first):

                    def ahead(done: int, total: int, k: int = k, update: Update = update) -> None:
                        update(k * total + done, first * total)

                    models.append(trained(network, k, arguments.folds, folder, ahead))
            with step(console, f"  {network}: choosing, answering, measuring") as update:
                results = measure_folds(models, variants, arguments.seconds, update, arguments.folds)
                rows += rows_of(network, results)
    console.print(figures(f"digits, batch {BATCH}, {arguments.threads} threads", HEADER, rows))
    if arguments.record:
        record.write("accuracy", sys.argv[1:], HEADER, rows)


if __name__ == "__main__":
    main()
