"""Networks by name: torchvision's or timm's definitions with seeded weights, so that nothing has to be downloaded."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import torch


@functools.cache
def _missing_ops() -> torch.library.Library:
    """Schemas of two of torchvision's own ops, for which its import registers fake kernels. No network here uses them.

    Kept for as long as the process runs: the schemas live as long as the library object does.
    """
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def torchvision_models() -> Any:
    """torchvision.models, also where torchvision's own compiled ops do not fit the installed torch."""
    try:
        return importlib.import_module("torchvision.models")
    except RuntimeError:
        _missing_ops()
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        return importlib.import_module("torchvision.models")


TRANSFORMERS = {"bert_base": {"width": 768, "heads": 12, "layers": 12, "words": 30522}}
SIZES = {"inception_v3": 299}  # of the images that a network was made for, where it is not 224


def build(name: str, size: int = 0, batch: int = 1, seed: int = 0) -> tuple[torch.nn.Module, torch.Tensor]:
    """A classifier in eval mode and an example input [batch, 3, size, size], by default as it was made for.

    Names that torchvision does not know are those of timm, which has to be installed for them.

    A name of TRANSFORMERS stands for an encoder as BERT is, with weights at random and words [batch, size].

    The statistics of batch normalisations are random, so that folding them matters, and chosen so that activations keep
    their magnitude through the network.
    """
    if name in TRANSFORMERS:
        return transformer(TRANSFORMERS[name], batch, size or 128, seed)
    models = torchvision_models()
    size = size or SIZES.get(name, 224)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if hasattr(models, name):
            model = getattr(models, name)(weights=None).eval()
        else:
            model = importlib.import_module("timm").create_model(name, pretrained=False).eval()
        example = torch.randn(batch, 3, size, size)
        randomise_statistics(model, example)
    return model, example


@torch.no_grad()
def randomise_statistics(model: torch.nn.Module, example: torch.Tensor) -> None:
    """Gives every batch normalisation random affine parameters, and statistics near those of its actual input."""

    def before(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        assert isinstance(module, torch.nn.BatchNorm2d)
        x = inputs[0]
        module.weight.uniform_(0.5, 1.5)
        module.bias.normal_(0, 0.2)
        # Only half of the mean is taken off, and the magnitude stands for the deviation: in an untrained network most
        # of a channel is its mean, and what is left without it would be magnified, rounding errors included.
        magnitude = x.square().mean(dim=(0, 2, 3)).sqrt() + 1e-3
        module.running_mean = 0.5 * x.mean(dim=(0, 2, 3)) + 0.1 * magnitude * torch.randn_like(magnitude)
        module.running_var = magnitude.square() * torch.empty_like(magnitude).uniform_(0.7, 1.4)

    hooks = [m.register_forward_pre_hook(before) for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    model(example)
    for hook in hooks:
        hook.remove()


class _Encoder(torch.nn.Module):
    """BERT's layers, between the embedding of words and a classifier's first layer."""

    def __init__(self, width: int, heads: int, layers: int, words: int, length: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.places = torch.nn.Parameter(0.02 * torch.randn(length, width))
        self.norm = torch.nn.LayerNorm(width)
        self.layers = torch.nn.ModuleList(_EncoderLayer(width, heads) for _ in range(layers))
        self.pooler = torch.nn.Linear(width, width)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.norm(self.words(words) + self.places)
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pooler(x[:, 0]))


class _EncoderLayer(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.attention_norm, self.norm = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.attention_norm(x + self.out(attended))
        return self.norm(x + self.narrow(torch.nn.functional.gelu(self.wide(x))))


def transformer(sizes: dict[str, int], batch: int, length: int, seed: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """An encoder in eval mode and words [batch, length] for it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _Encoder(**sizes, length=length).eval()
        return model, torch.randint(sizes["words"], (batch, length))
