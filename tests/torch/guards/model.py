"""A model with much to guard, and a backend that counts."""

import torch
from torch import nn

from softneuro.torch_backend import softneuro as backend


class Block(nn.Module):
    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.settings = {"scale": 2.0, "deeper": {"offset": 0.0}}
        self.powers = [1, 2]

    def forward(self, x):
        y = self.norm(self.conv(x)) * self.settings["scale"] + self.settings["deeper"]["offset"]
        for power in self.powers:
            y = y + x * power
        return y


class Doubled(Block):
    def forward(self, x):
        return 2 * super().forward(x)


class Model(nn.Module):
    def __init__(self, blocks: int = 2) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.last = nn.Conv2d(4, 2, 1, bias=False)
        self.register_buffer("shift", torch.randn(2, 1, 1))

    def forward(self, x):
        return self.last(self.blocks(x)) + self.shift


class Counting:
    """The backend, and how many graphs it was given."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, gm, inputs, **arguments):
        self.graphs += 1
        return backend(gm, inputs, **arguments)
