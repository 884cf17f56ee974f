"""Activations as transformers spell them are one layer each."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.torch.straight import Every, Straight

SPELT = {
    "GELU by erf": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "new GELU": lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
    "fast GELU": lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))),
    "accurate GELU": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3)))),
    "GELU by products": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
    "quick GELU": lambda x: x * torch.sigmoid(1.702 * x),
    "SiLU": lambda x: x * torch.sigmoid(x),
    "GELU": F.gelu,
    "Mish": F.mish,
    "Mish by softplus": lambda x: x * torch.tanh(F.softplus(x)),
}


def test_one_layer_each(all_agree):
    # A layer that takes no activation comes before each.
    cases = {name: (function, 3 * torch.randn(4, 33)) for name, function in SPELT.items()}
    every = Every(cases, before=lambda x: F.elu(x, 4.0))
    straight = Straight(every, min_region_size=1)
    all_agree(straight, every)
    kinds = [descriptor.split("/")[0] for descriptor in straight.layers()]
    assert sorted(kinds) == ["activation"] * 2 * len(SPELT) + ["binary"] * len(SPELT)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves(dtype, all_agree):
    cases = {name: (function, torch.randn(4, 33).to(dtype)) for name, function in SPELT.items()}
    every = Every(cases)
    all_agree(Straight(every, min_region_size=1), every, tolerance=0.01)
