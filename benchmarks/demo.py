"""The main job on real input: digits that must stay as well recognised, exactly or nearly, then networks on a photo."""

from __future__ import annotations

import copy
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from rich.console import Console
from sklearn.datasets import load_sample_image
from torch import nn

import softneuro.torch_backend
from benchmarks import accuracy, digits, models
from benchmarks.peers import inductor
from benchmarks.shut_out import is_sparse
from benchmarks.steps import step
from benchmarks.tables import figures
from softneuro import _C, tuner
from softneuro.error_measure import relative_error

NETWORKS = ["resnet18", "resnet50", "mobilenet_v2", "vgg16"]


def median_ms(
    runners: dict[str, Callable[[torch.Tensor], torch.Tensor]], x: torch.Tensor, rounds: int
) -> dict[str, float]:
    """Interleaved medians; one untimed run before each timed one gives the caches back to whoever is next."""
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            runner(x)
            start = time.perf_counter()
            runner(x)
            samples[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(times) for name, times in samples.items()}


@contextmanager
def tuning(console: Console, network: str) -> Iterator[None]:
    """Shows how much of a network's first call is done, most of which is to measure routines."""
    with step(console, f"  {network}: measuring routines, choosing", "up to half a minute, once") as update:
        token = tuner.listener.set(update)
        try:
            yield
        finally:
            tuner.listener.reset(token)


def recognise_digits(console: Console) -> bool:
    """Trains, compiles, and compares accuracy and speed on the held-back digits."""
    images, labels, test_images, test_labels = digits.data()
    agree, rows = True, []
    for name, build in (("small ResNet", digits.small_resnet), ("small MobileNet", digits.small_mobilenet)):
        torch.manual_seed(0)
        with step(console, f"  {name}: training") as update:
            model = digits.train(build(), images, labels, update, epochs=12)
        compiled = torch.compile(model, backend="softneuro")
        with torch.no_grad():
            with tuning(console, name):
                actual = compiled(test_images).argmax(1)
            expected = model(test_images).argmax(1)
            times = median_ms({"eager": model, "softneuro": compiled}, test_images, 15)
        same = int((expected == actual).sum())
        agree &= same == len(test_images)
        accuracies = (float((answers == test_labels).float().mean()) for answers in (expected, actual))
        rows.append(
            [
                name,
                *(f"{accuracy:.2%}" for accuracy in accuracies),
                f"{same} of {len(test_images)}",
                *(f"{times[peer]:.2f}" for peer in ("eager", "softneuro")),
                f"{times['eager'] / times['softneuro']:.2f}x",
            ]
        )
    header = [
        "network",
        "accuracy, eager",
        "accuracy, softneuro",
        "same answers",
        "eager ms",
        "softneuro ms",
        "speed-up",
    ]
    console.print(figures(f"digits: {len(test_images)} held-back images", header, rows))
    return agree


def spend_on_digits(console: Console) -> None:
    """Bears a drop of half a point on the training digits, and shows what that is on one fold's held-back ones."""
    name, drop = "small VGG", 0.005
    images, labels, test_images, test_labels = digits.fold(0)
    torch.manual_seed(0)
    with step(console, f"  {name}: training on four fifths") as update:
        model = digits.train(digits.small_vgg(), images, labels, update, epochs=5)
    batch = test_images[: accuracy.BATCH]
    floats = torch.compile(accuracy.apart(model), backend="softneuro")
    with torch.no_grad():
        with step(console, f"  {name}: observing values, measuring routines, evaluating", "half a minute"):
            hybrid = accuracy.tuned(max_drop=drop)(model, images, labels)
        ways = {"eager": model, "softneuro": floats, "hybrid": hybrid}
        right = {way: accuracy.right(run, test_images, test_labels) for way, run in ways.items()}
        times = median_ms(ways, batch, 30)
    rows = [
        [
            f"{name}, {way}",
            f"{float(answers.double().mean()):.2%}",
            f"{int((right['eager'] & ~answers).sum())}, {int((~right['eager'] & answers).sum())}",
            f"{times[way]:.2f}",
            f"{times['eager'] / times[way]:.2f}x",
        ]
        for way, answers in right.items()
    ]
    header = ["network", "accuracy", "lost, gained", f"ms for {len(batch)}", "speed-up"]
    console.print(figures(f"digits, one fold of five: {len(test_images)} held-back images", header, rows))


def prune_digits(console: Console) -> bool:
    """Prunes a network to nine tenths of zeros, and compares it with itself before, one image at a time."""
    images, labels, test_images, test_labels = digits.data()
    name = "small VGG"
    torch.manual_seed(0)
    with step(console, f"  {name}: training") as update:
        whole = digits.train(digits.small_vgg(), images, labels, update, epochs=5)
    with step(console, f"  {name}: pruning by magnitude, training what is left, three times") as update:
        model = digits.prune_model(copy.deepcopy(whole), images, labels, update, zeros=[0.5, 0.75, 0.9], epochs=2)
    x = test_images[:1]
    with torch.no_grad():
        with tuning(console, name):
            plan = softneuro.torch_backend.tune(model, (x,))
            compiled, compiled_whole = (torch.compile(m, backend="softneuro") for m in (model, whole))
            times = median_ms({"eager": model, "whole": compiled_whole, "pruned": compiled}, x, 100)
        before, expected = (m(test_images).argmax(1) for m in (whole, model))
        actual = torch.cat([compiled(image.unsqueeze(0)).argmax(1) for image in test_images])
    same = int((expected == actual).sum())
    accuracies = (float((answers == test_labels).float().mean()) for answers in (before, expected, actual))
    zeros = softneuro.torch_backend.sparsity(model).zeros
    row = [
        f"{name}, {zeros:.1%} zeros",
        *(f"{accuracy:.2%}" for accuracy in accuracies),
        f"{same} of {len(test_images)}",
        *(f"{times[way]:.2f}" for way in ("eager", "whole", "pruned")),
        f"{times['whole'] / times['pruned']:.2f}x",
    ]
    header = [
        "network",
        "accuracy, whole",
        "pruned, eager",
        "pruned, softneuro",
        "same answers",
        "eager ms",
        "softneuro ms, whole",
        "pruned",
        "speed-up",
    ]
    console.print(figures("digits, one by one", header, [row]))
    console.print("Routines that use zeros, chosen because they are faster here:")
    chosen = [f"{layer.name}: {layer.descriptor}" for layer in plan.layers if is_sparse(layer.descriptor)]
    for line in chosen or ["none"]:
        console.print(f"    {line}", highlight=False)
    return same == len(test_images)


def photo() -> torch.Tensor:
    """scikit-learn's bundled photo of a flower as a normalised [1,3,224,224] image."""
    image = torch.from_numpy(load_sample_image("flower.jpg").copy()).permute(2, 0, 1).unsqueeze(0).float() / 255
    image = nn.functional.interpolate(image[..., :, 100:527], size=(224, 224), mode="bilinear", antialias=True)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return ((image - mean.view(1, 3, 1, 1)) / deviation.view(1, 3, 1, 1)).contiguous()


def look_at_photo(console: Console) -> None:
    """Known networks on the photo: error, speed, tuning time, and where a second choice would hurt most."""
    x = photo()
    rows: list[list[str]] = []
    regrets: list[tuple[str, list[str]]] = []
    with torch.no_grad():
        for network in NETWORKS:
            model, _ = models.build(network)
            start = time.perf_counter()
            with tuning(console, network):
                plan = softneuro.torch_backend.tune(model, (x,))
            seconds = time.perf_counter() - start
            with step(console, f"  {network}: inductor compiling, then all by turns", "half a minute"):
                compiled = torch.compile(model, backend="softneuro")
                expected, actual = model(x), compiled(x)
                error = relative_error(actual, expected)
                times = median_ms({"eager": model, "inductor": inductor(model, x, 2), "softneuro": compiled}, x, 15)
            rows.append(
                [
                    network,
                    f"{error:.1e}",
                    *(f"{times[peer]:.1f}" for peer in ("eager", "inductor", "softneuro")),
                    *(f"{times[peer] / times['softneuro']:.2f}x" for peer in ("eager", "inductor")),
                    f"{seconds:.1f}",
                ]
            )
            named = [layer for layer in plan.layers if layer.descriptor]  # not those that a fusion computes
            layers = sorted(named, key=lambda layer: layer.regret, reverse=True)[:3]
            regrets.append((network, [f"{x.name}: {x.descriptor}, {x.regret * 1e3:.3f} ms" for x in layers]))
            torch.compiler.reset()
    header = ["network", "error", "eager ms", "inductor ms", "softneuro ms", "vs eager", "vs inductor", "tuning s"]
    console.print(figures(f"a photo, 1x3x224x224, {torch.get_num_threads()} threads", header, rows))
    console.print("The layers with the highest regret (milliseconds lost by the second-best routine):")
    for network, lines in regrets:
        console.print(f"  {network}", highlight=False)
        for line in lines:
            console.print(f"    {line}", highlight=False)


def main() -> None:
    warnings.filterwarnings("ignore")
    console = Console(width=max(Console().width, 140))  # tables squeezed into 80 columns are unreadable
    console.print(
        "softneuro measures on this machine which routine is best for each layer. All in all this takes some four\n"
        "minutes where nothing else runs. A second time it is quicker: what was measured is kept in\n"
        f"{_C.CostDb.default_directory()}."
    )
    console.print("1 of 4: two small networks learn digits, and have to give the same answers through softneuro.")
    agree = recognise_digits(console)
    console.print("2 of 4: a network may lose half a point of accuracy, and stores in bytes what is faster so.")
    spend_on_digits(console)
    console.print("3 of 4: a network is pruned until nine tenths of its weights are zero. No routine is asked for.")
    agree = prune_digits(console) and agree
    console.print("4 of 4: four known networks look at a photo.")
    look_at_photo(console)
    if not agree:
        sys.exit("softneuro's answers differ from eager's")


if __name__ == "__main__":
    main()
