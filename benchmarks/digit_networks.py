"""Four networks of the kinds that are quantized in earnest, for scikit-learn's digits: each trained in some minute.

They take [N,1,32,32] to [N,10] and have 130,000 to 380,000 parameters. The depthwise layers of `mobilenet` are made
awkward after training: see `spread_channels`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks import digits
from benchmarks.digits import Residual
from benchmarks.steps import Update

RATIO = 128.0  # between the widest and the narrowest channel of a spread layer


def convolution(
    inputs: int, outputs: int, size: int, stride: int = 1, *, groups: int = 1, act: type[nn.Module] | None = None
) -> list[nn.Module]:
    """A convolution that keeps the image's size but for its stride, batch norm, an activation."""
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return [*layers, act()] if act else layers


class SqueezeExcite(nn.Module):
    """Scales channels by what their means say, as in MobileNetV3."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(channels // 4, 8)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = x * self.gate(x)
        return out


class Bottleneck(nn.Module):
    """Expand, depthwise, project around a shortcut: as in MobileNetV2, with a squeeze-excite as in MobileNetV3."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        expand: int = 6,
        *,
        act: type[nn.Module] = nn.ReLU,
        size: int = 3,
        squeeze: bool = False,
    ) -> None:
        super().__init__()
        hidden = inputs * expand
        self.expand = nn.Sequential(*convolution(inputs, hidden, 1, act=act))
        self.depthwise = nn.Sequential(*convolution(hidden, hidden, size, stride, groups=hidden, act=act))
        self.squeeze = SqueezeExcite(hidden) if squeeze else nn.Identity()
        self.project = nn.Sequential(*convolution(hidden, outputs, 1))
        self.same = inputs == outputs and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.project(self.squeeze(self.depthwise(self.expand(x))))
        return x + out if self.same else out


class Attention(nn.Module):
    """Self-attention of several heads, as torch computes it in one step."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        out: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return out


class Encoder(nn.Module):
    """Attention, then a perceptron, each behind a LayerNorm and around a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        out: torch.Tensor = x + self.perceptron(x)
        return out


class Vit(nn.Module):
    """A vision transformer. The digit is the mean of all tokens."""

    def __init__(self, image: int = 32, patch: int = 4, width: int = 64, blocks: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(*(Encoder(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        out: torch.Tensor = self.head(self.norm(self.blocks(x)).mean(1))
        return out


def resnet() -> nn.Module:
    return nn.Sequential(
        *convolution(1, 32, 3, act=nn.ReLU),
        nn.MaxPool2d(2),
        Residual(32, 32, 1),
        Residual(32, 64, 2),
        Residual(64, 64, 1),
        Residual(64, 128, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def mobilenet() -> nn.Module:
    """With ReLU in the place of ReLU6: positive factors pass through it."""
    return nn.Sequential(
        *convolution(1, 24, 3, 2, act=nn.ReLU),
        Bottleneck(24, 24, 1),
        Bottleneck(24, 32, 2),
        Bottleneck(32, 32, 1),
        Bottleneck(32, 64, 2),
        Bottleneck(64, 64, 1),
        *convolution(64, 256, 1, act=nn.ReLU),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def squeeze_excite() -> nn.Module:
    return nn.Sequential(
        *convolution(1, 24, 3, 2, act=nn.Hardswish),
        Bottleneck(24, 24, 1, 3, act=nn.ReLU, squeeze=True),
        Bottleneck(24, 40, 2, 4, act=nn.Hardswish, size=5, squeeze=True),
        Bottleneck(40, 40, 1, 4, act=nn.Hardswish, size=5, squeeze=True),
        Bottleneck(40, 64, 2, 4, act=nn.Hardswish, squeeze=True),
        Bottleneck(64, 64, 1, 4, act=nn.Hardswish, squeeze=True),
        *convolution(64, 256, 1, act=nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 256),
        nn.Hardswish(),
        nn.Linear(256, 10),
    )


def vit() -> nn.Module:
    return Vit()


def bottlenecks(model: nn.Module) -> Iterator[Bottleneck]:
    yield from (module for module in model.modules() if isinstance(module, Bottleneck))


def folded(convolution: nn.Module, norm: nn.Module) -> torch.Tensor:
    """A convolution's weight with the factors of the batch norm behind it."""
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    variance = norm.running_var
    assert variance is not None
    factors = norm.weight / torch.sqrt(variance + norm.eps)
    return convolution.weight * factors.view(-1, 1, 1, 1)


def channel_ranges(convolution: nn.Module, norm: nn.Module) -> torch.Tensor:
    """The largest magnitude of each output channel's folded weights."""
    return folded(convolution, norm).detach().abs().amax(dim=(1, 2, 3))


@torch.no_grad()
def spread_channels(model: nn.Module, ratio: float = RATIO) -> nn.Module:
    """Makes the ranges of depthwise layers' folded weights differ by `ratio` from channel to channel, in place.

    The function stays what it is. A channel's factor goes in part into the batch norm behind the depthwise layer and
    out of the projection's weights, and in part out of the batch norm before and into the depthwise weights. Between
    them are ReLUs alone. Factors are powers of two, which round nothing.
    """
    generator = torch.Generator().manual_seed(0)
    for block in bottlenecks(model):
        if not isinstance(block.squeeze, nn.Identity) or not isinstance(block.depthwise[2], nn.ReLU):
            raise ValueError("no factor passes through squeeze-excite, or through activations other than ReLU")
        ranges = channel_ranges(block.depthwise[0], block.depthwise[1])
        order = torch.randperm(len(ranges), generator=generator)
        # Rounding to powers of two moves each end by less than a factor of 1.42.
        wanted = torch.logspace(0, 1, len(ranges), base=2 * ratio)[order]
        factors = torch.exp2(torch.round(torch.log2(wanted / ranges)))
        factors /= torch.exp2(torch.round(torch.log2(factors).mean()))
        before = torch.exp2(torch.round(torch.log2(factors) / 2))
        behind = factors / before
        for norm, by in ((block.expand[1], 1 / before), (block.depthwise[1], behind)):
            norm.weight *= by
            norm.bias *= by
        block.depthwise[0].weight *= before.view(-1, 1, 1, 1)
        block.project[0].weight /= behind.view(1, -1, 1, 1)
        spread = channel_ranges(block.depthwise[0], block.depthwise[1])
        assert spread.max() >= ratio * spread.min()
    return model


@dataclass(frozen=True)
class Network:
    """How one is made."""

    build: Callable[[], nn.Module]
    epochs: int
    peak_rate: float
    finish: Callable[[nn.Module], nn.Module] = lambda model: model


NETWORKS = {
    "resnet": Network(resnet, 10, 5e-3),
    "mobilenet": Network(mobilenet, 12, 1e-2, spread_channels),
    "squeeze_excite": Network(squeeze_excite, 12, 1e-2),
    "vit": Network(vit, 20, 3e-3),
}


def trained(name: str, images: torch.Tensor, labels: torch.Tensor, update: Update) -> nn.Module:
    """A network trained on these, the same each time."""
    network = NETWORKS[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    model = digits.train(network.build(), images, labels, update, network.epochs, peak_rate=network.peak_rate)
    return network.finish(model)
