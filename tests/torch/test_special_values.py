"""Functions with other ways to compute them, at zeros of both signs, infinities and NaN: all as eager has them."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.torch.straight import Every, Straight
from tests.torch.told import computed_by_host

INF, NAN = math.inf, math.nan
FUNCTIONS = {
    "pow_half": lambda x: x**0.5,
    "pow_minus_half": lambda x: x**-0.5,
    "pow_half_by_tensor": lambda x: x ** torch.full_like(x, 0.5),
    "pow_two": lambda x: x**2,
    "pow_minus_one": lambda x: x**-1,
    "pow_zero": lambda x: x**0,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "abs": torch.abs,
    "reciprocal": torch.reciprocal,
    "relu6": F.relu6,
    "hardtanh_open": lambda x: F.hardtanh(x, -INF, 1),
    "clamp_largest": lambda x: x.clamp(-torch.finfo(x.dtype).max, torch.finfo(x.dtype).max),
    "clamp_below_only": lambda x: x.clamp(min=-torch.finfo(x.dtype).max),
    "clamp_above_only": lambda x: x.clamp(max=torch.finfo(x.dtype).max),
    "clamp_crossed": lambda x: x.clamp(1, -1),
    "clamp_below_nan": lambda x: x.clamp(min=NAN),
    "clamp_nan": lambda x: x.clamp(NAN, 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_special_values(dtype, states):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 4.0, INF, -INF, NAN] * 5, dtype=dtype).reshape(5, 8)
    every = Every({name: (function, x) for name, function in FUNCTIONS.items()}, nn.Identity(), nn.Identity())
    compiled = Straight(every, min_region_size=1)
    results = compiled(*every.inputs)
    assert not computed_by_host(compiled.graph.partition.host)
    assert set(states()) == {None}
    for name, result, expected in zip(FUNCTIONS, results, every(*every.inputs), strict=True):
        torch.testing.assert_close(result, expected, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")
        numbers = ~expected.isnan()
        assert torch.equal(result[numbers].signbit(), expected[numbers].signbit()), name
