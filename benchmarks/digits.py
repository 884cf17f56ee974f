"""Small networks trained on scikit-learn's bundled digits: real data, real accuracy, in under a minute.

benchmarks/digit_networks.py has larger ones.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch import nn
from torch.nn.utils import prune

from benchmarks.steps import Update


class Residual(nn.Module):
    """Two 3x3 convolutions with batch norm around a shortcut, as in ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        same = inputs == outputs and stride == 1
        self.shortcut: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class InvertedResidual(nn.Module):
    """Expand, depthwise, project, as in MobileNetV2."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int = 4) -> None:
        super().__init__()
        hidden = inputs * expand
        self.body = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.same = inputs == outputs and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.body(x)
        return x + out if self.same else out


def small_resnet() -> nn.Module:
    """[N,1,32,32] to [N,10]."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Residual(16, 32, 2),
        Residual(32, 32, 1),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def small_mobilenet() -> nn.Module:
    """[N,1,32,32] to [N,10]."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU6(),
        InvertedResidual(16, 24, 2),
        InvertedResidual(24, 24, 1),
        InvertedResidual(24, 40, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 10),
    )


def small_vgg() -> nn.Module:
    """[N,1,32,32] to [N,10]. Most of its weights are in a fully connected layer, as they are in VGG."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, 1, 1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4096, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )


@functools.cache
def everything() -> tuple[torch.Tensor, torch.Tensor]:
    """All 1797 images, [N,1,32,32] in 0..1, with labels."""
    digits = load_digits()
    images = torch.from_numpy(digits.images.astype(np.float32) / 16).unsqueeze(1)
    return nn.functional.interpolate(images, size=(32, 32), mode="bilinear"), torch.from_numpy(digits.target)


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images [N,1,32,32] in 0..1 with labels, then held-back ones."""
    images, labels = everything()
    parts = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
    return parts[0], parts[2], parts[1], parts[3]


def held_back(folds: int = 5) -> list[torch.Tensor]:
    """For each fold the positions of its held-back images in `everything`. Each image is held back once."""
    images, labels = everything()
    splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(images, labels)
    return [torch.from_numpy(test) for _, test in splits]


def fold(k: int, folds: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `data`, with the k-th part of so many held back."""
    images, labels = everything()
    test = held_back(folds)[k]
    kept = torch.ones(len(images), dtype=torch.bool)
    kept[test] = False
    return images[kept], labels[kept], images[test], labels[test]


def moved(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each image turned by up to ten degrees, shifted by up to an eighth, and up to a tenth larger or smaller."""
    random = torch.rand(4, len(images), generator=generator) * 2 - 1
    angle, scale, shift = random[0] * 0.17, 1 + random[1] * 0.1, random[2:] * 0.12
    sine, cosine = torch.sin(angle) * scale, torch.cos(angle) * scale
    rows = torch.stack([cosine, -sine, shift[0], sine, cosine, shift[1]], 1).view(-1, 2, 3)
    grid = nn.functional.affine_grid(rows, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, align_corners=False)


def train(
    model: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    update: Update,
    epochs: int,
    *,
    peak_rate: float | None = None,
) -> nn.Module:
    """Trains in place with Adam and returns the model in evaluation mode.

    With `peak_rate` the learning rate rises to it and falls to nothing, and images are `moved` each time.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=peak_rate or 3e-3)
    generator = torch.Generator().manual_seed(0)
    steps = epochs * -(-len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak_rate, steps) if peak_rate else None
    model.train()
    for epoch in range(epochs):
        for batch in torch.randperm(len(images), generator=generator).split(64):
            inputs = moved(images[batch], generator) if peak_rate else images[batch]
            loss = nn.functional.cross_entropy(model(inputs), labels[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if schedule:
                schedule.step()
        update(epoch + 1, epochs)
    return model.eval()


def prune_model(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, update: Update, *, zeros: Sequence[float], epochs: int
) -> nn.Module:
    """By iterative magnitude: for each of the fractions, the smallest weights become zero, and the rest is trained.

    In place, over all layers together; the masks are gone afterwards, as they are from a checkpoint.
    """
    weights = [(module, "weight") for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    before = 0.0
    for number, fraction in enumerate(zeros):
        share = (fraction - before) / (1 - before)  # of what is left
        prune.global_unstructured(weights, prune.L1Unstructured, amount=share)
        done, total = number * epochs, len(zeros) * epochs
        train(model, images, labels, lambda epoch, _, done=done, total=total: update(done + epoch, total), epochs)
        before = fraction
    for module, name in weights:
        prune.remove(module, name)
    return model
