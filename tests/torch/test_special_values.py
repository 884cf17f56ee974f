"""Functions with other ways to compute them, at zeros of both signs, infinities and NaN: all as eager has them."""

import math

import pytest
import torch
from torch.nn import functional as F

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
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name, dtype, compile_model, states):
    function = FUNCTIONS[name]
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 4.0, INF, -INF, NAN] * 5, dtype=dtype).reshape(5, 8)
    compiled = compile_model(function, min_region_size=1, never_worse=False)
    with torch.no_grad():
        result, expected = compiled(x), function(x)
    assert states() == [None]
    torch.testing.assert_close(result, expected, equal_nan=True)
    numbers = ~expected.isnan()
    assert torch.equal(result[numbers].signbit(), expected[numbers].signbit())
