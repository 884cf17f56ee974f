"""Writes benchmarks/shapes/*.txt: the distinct layers of known networks with how often each occurs.

One layer per line: type, input shape, weight shape, attributes that are not the default, count. Run again only when a
network is added or the format changes: `python -m benchmarks.make_shapes`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.models import torchvision_models

FOLDER = Path(__file__).parent / "shapes"
# File name -> torchvision names, image size.
NETWORKS: dict[str, tuple[list[str], int]] = {
    "vgg16": (["vgg16"], 224),
    "resnet18": (["resnet18"], 224),
    "resnet50": (["resnet50"], 224),
    "mobilenet_v2": (["mobilenet_v2"], 224),
    "mobilenet_v3": (["mobilenet_v3_large", "mobilenet_v3_small"], 224),
    "squeezenet": (["squeezenet1_1"], 224),
    "inception_v3": (["inception_v3"], 299),
}


def by_x(sizes: Any) -> str:
    return "x".join(str(int(size)) for size in sizes)


def line_of(module: nn.Module, shape: torch.Size) -> str | None:
    if isinstance(module, nn.Linear):
        return f"linear {by_x(shape)} {by_x(module.weight.shape)}"
    if not isinstance(module, nn.Conv2d):
        return None
    assert not isinstance(module.padding, str)
    padding = module.padding * 2  # top, left, bottom, right
    words = [f"conv2d {by_x(shape)} {by_x(module.weight.shape)}"]
    for name, value in (("stride", module.stride), ("padding", padding), ("dilation", module.dilation)):
        if any(number != (name != "padding") for number in value):
            words.append(f"{name}={','.join(map(str, value))}")
    if module.groups != 1:
        words.append(f"groups={module.groups}")
    return " ".join(words)


def distinct_layers(name: str, size: int) -> Counter[str]:
    """Lines and counts in the order of first use; nothing is computed."""
    with torch.device("meta"):
        model = getattr(torchvision_models(), name)(weights=None).eval()
        lines: Counter[str] = Counter()

        def note(module: nn.Module, inputs: tuple[torch.Tensor, ...], _: object) -> None:
            if line := line_of(module, inputs[0].shape):
                lines[line] += 1

        for module in model.modules():
            module.register_forward_hook(note)
        model(torch.empty(1, 3, size, size))
    return lines


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, (models, size) in NETWORKS.items():
        text = f"# {', '.join(models)} of torchvision, 1x3x{size}x{size}; every layer has a bias once folded\n"
        lines: Counter[str] = Counter()
        for model in models:
            lines += distinct_layers(model, size)
        text += "".join(f"{line} count={count}\n" for line, count in lines.items())
        (FOLDER / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
