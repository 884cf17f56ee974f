"""Networks whose weights are zero in part, as benchmarks.sparse measures them: no pattern, seeded."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from benchmarks import models

NETWORKS = ["vgg19", "vgg19_convolutions", "resnet34", "synthetic"]
ZEROS = [70.0, 80.0, 90.0, 95.0, 97.5]  # per cent
WAYS = ["random", "magnitude"]
UNEVEN = 0.5  # deviation of the logarithm of an output channel's scale, where magnitudes decide


def synthetic() -> nn.Module:
    """Four convolutions on a large image, from "Fused DSConv: Optimizing Sparse CNN Inference"."""
    channels = [3, 64, 64, 32, 32]
    layers = [(nn.Conv2d(c, k, 3, padding=1), nn.ReLU()) for c, k in pairwise(channels)]
    return nn.Sequential(*(module for pair in layers for module in pair)).eval()


def build(
    network: str, zeros: float, *, way: str = "random", seed: int = 0, fc: bool = False, size: int = 0
) -> tuple[nn.Module, torch.Tensor]:
    """A network with that fraction of zeros in each convolution, and in fully connected layers if asked for."""
    if network == "synthetic":
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model, example = synthetic(), torch.randn(1, 3, size or 1000, size or 1000)
        prune(model, zeros, way=way, seed=seed)
        return model, example
    model, example = models.build(network.partition("_")[0], size=size, seed=seed)
    if network.endswith("_convolutions"):
        model = model.features
    prune(model, zeros, way=way, seed=seed, fc=fc)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        models.randomise_statistics(model, example)
    return model, example


@torch.no_grad()
def prune(model: nn.Module, zeros: float, *, way: str, seed: int, fc: bool = False) -> None:
    """Sets weights to zero in place, layer by layer. What is left is scaled so that a weight keeps its norm.

    By magnitude, output channels differ in scale before, as they do in trained networks, and so in zeros afterwards.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if not isinstance(module, (nn.Conv2d, nn.Linear) if fc else nn.Conv2d):
            continue
        weight = module.weight
        norm = weight.norm()
        if way == "magnitude":
            scales = torch.exp(UNEVEN * torch.randn(len(weight), generator=generator))
            weight *= scales.view(-1, *[1] * (weight.dim() - 1))
            worth = weight.abs()
        else:
            worth = torch.rand(weight.shape, generator=generator)
        weight.view(-1)[worth.flatten().topk(round(zeros * weight.numel()), largest=False).indices] = 0
        weight *= norm / weight.norm()
