"""Normalisations of transformers are layers, however a model spells them."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.torch.straight import Every, Straight

WIDTH, EPS = 24, 1e-5


class Spelt(nn.Module):
    """A normalisation with a weight, and a bias if there is one."""

    def __init__(self, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.bias = nn.Parameter(torch.randn(WIDTH)) if bias else None


class Llama(Spelt):
    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + EPS)).to(dtype)


class T5(Spelt):
    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + EPS))


class Gemma(Spelt):
    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * (1.0 + self.weight.float())


class Gemma3n(Spelt):
    def forward(self, x):
        return x * torch.pow(x.pow(2).mean(-1, keepdim=True) + EPS, -0.5) * self.weight


class Root(Spelt):
    def forward(self, x):
        return self.weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)


class LayerNorm(Spelt):
    def forward(self, x):
        u = x.mean(-1, keepdim=True)
        s = (x - u).pow(2).mean(-1, keepdim=True)
        return self.weight * ((x - u) / torch.sqrt(s + EPS)) + self.bias


class LayerNormOnce(Spelt):
    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + EPS).rsqrt() * self.weight + self.bias


class Fused(Spelt):
    def forward(self, x):
        return torch.ops.aten._fused_rms_norm(x, (WIDTH,), self.weight, EPS)[0]


class FusedAlone(nn.Module):
    def forward(self, x):
        return torch.ops.aten._fused_rms_norm(x, (5, WIDTH), None, None)[0]


def weighted(norm: nn.Module) -> nn.Module:
    nn.init.uniform_(norm.weight, 0.5, 2)
    return norm


RMS = {
    "Llama": Llama(),
    "T5": T5(),
    "Gemma": Gemma(),
    "Gemma 3n": Gemma3n(),
    "root": Root(),
    "nn.RMSNorm": weighted(nn.RMSNorm(WIDTH)),
    "nn.RMSNorm with an eps": weighted(nn.RMSNorm((5, WIDTH), eps=0.1)),
    "nn.RMSNorm alone": nn.RMSNorm(WIDTH, elementwise_affine=False),
    "fused": Fused(),
    "fused and alone": FusedAlone(),
}
LAYER = {"layer norm": LayerNorm(True), "layer norm in one difference": LayerNormOnce(True)}


def kinds(straight: Straight) -> list[str]:
    return [descriptor.split("/")[0] for descriptor in straight.layers()]


def x() -> torch.Tensor:
    return torch.randn(3, 5, WIDTH)


@pytest.mark.parametrize(("kind", "norms"), [("rms_norm", RMS), ("layer_norm", LAYER)])
def test_one_layer(kind, norms, all_agree):
    every = Every({name: (norm, x()) for name, norm in norms.items()})
    straight = Straight(every)
    all_agree(straight, every)
    assert sorted(kinds(straight)) == sorted([kind, "binary", "binary"] * len(norms))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves(dtype, all_agree):
    names = [name for name in RMS if name not in ("Gemma", "Gemma 3n")]
    every = Every({name: (deepcopy(RMS[name]).to(dtype), x().to(dtype)) for name in names})
    straight = Straight(every)
    all_agree(straight, every, tolerance=0.01)
    assert kinds(straight).count("rms_norm") == len(names)


def test_an_eps_of_its_own(all_agree):
    """Small numbers tell of which type it is."""
    every = Every(
        {
            f"{name}, {dtype}": (deepcopy(RMS[name]).to(dtype), 1e-4 * x().to(dtype))
            for name in ("nn.RMSNorm", "fused and alone")
            for dtype in (torch.float32, torch.bfloat16)
        }
    )
    all_agree(Straight(every), every, tolerance=0.01)


def test_a_weight_that_is_no_constant(compile_model, agree):
    def scaled(x):
        return torch.ops.aten._fused_rms_norm(x * 2, (WIDTH,), x[0, 0].exp(), EPS)[0] + F.rms_norm(x, (WIDTH,), x[0, 0])

    agree(compile_model(scaled, min_region_size=1), scaled, x(), nets=False)


def test_special_values(all_agree):
    """An infinity makes NaN of its row's place alone, a NaN of the row."""
    given = x()
    given[0, 1, 2], given[1, 2, 3], given[2, 0] = torch.inf, torch.nan, 0
    every = Every({"Llama": (Llama(), given)}, before=lambda x: x * 1, behind=lambda y: y + 0)
    with torch.no_grad():
        (found,), (expected,) = Straight(every)(given), every(given)
    torch.testing.assert_close(found, expected, equal_nan=True)
