"""Steps of the host on two-byte reals: in the host's types, within a net of float32."""

import copy

import pytest
import torch
from torch import nn

from softneuro.error_measure import measure_error
from softneuro.torch_backend.compile.ops.reals import numbers
from tests.torch.odd_ops import ODD, Odd


def assert_no_worse(results, hosts, truths):
    """In the host's type, and as near to the truth as the host."""
    for ours, theirs, truth in zip(results, hosts, truths, strict=True):
        assert (ours.dtype, ours.stride()) == (theirs.dtype, theirs.stride())
        found = measure_error(numbers(ours), numbers(theirs), numbers(truth))
        assert found.within(1e-5), found


# Where two values are alike in halves, their order is chance.
@pytest.mark.parametrize("name", ["cumprod", "sort", "strange order", "several in a row", "views"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves(name, dtype, compile_model, regions, image):
    model = Odd(ODD[name]).to(dtype).eval()
    compiled, x = compile_model(model), image.to(dtype)
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        for _ in range(3):
            assert_no_worse([compiled(x)], [model(x)], [exact(x.double())])
        x = x.contiguous(memory_format=torch.channels_last)
        assert_no_worse([compiled(x)], [model(x)], [exact(x.double())])
    assert all(region.region.steps for region in regions())
    assert all(shaped.host is None for region in regions() for shaped in region.shaped.values())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_steps_run_in_the_hosts_types(dtype, compile_model, regions):
    """What depends on the type itself, beyond its precision."""

    def odd(x):
        return torch.nextafter(x, torch.ones_like(x)), torch.signbit(torch.nan_to_num(x * 1e38)), x > 0

    class Model(Odd):
        def forward(self, x):
            nexts, signs, above = self.odd(x.relu().relu())
            return (torch.where(above, nexts, nexts) * 2).relu(), signs

    model = Model(odd).eval()
    compiled = compile_model(model)
    x = torch.randn(2, 8, 4, 4, dtype=dtype)
    with torch.no_grad():
        for ours, theirs in zip(compiled(x), model(x), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    (region,) = regions()
    assert region.region.steps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_weight_of_halves_that_a_step_reads(dtype, compile_model, regions):
    """Where it lies: no copy in float32 is made of it."""

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(50, 16)
            self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)

        def forward(self, x):
            x = self.first(x).relu()
            return self.last(torch.take(self.words.weight, (x.argmax(-1, keepdim=True) + torch.arange(16))) + x).relu()

    model = Words().to(dtype).eval()
    compiled, x = compile_model(model), torch.randn(5, 16, dtype=dtype)
    with torch.no_grad():
        for _ in range(2):
            exact = copy.deepcopy(model).double()(x.double())
            assert_no_worse([compiled(x)], [model(x)], [exact])
            model.words.weight.mul_(2)
    (region,) = regions()
    assert region.region.steps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype, compile_model, regions, image):
    model = Odd(ODD["cumprod"]).eval()
    compiled = compile_model(model)
    exact = copy.deepcopy(model).double()(image.double())
    with torch.no_grad():
        plain = model(image)
        torch.testing.assert_close(compiled(image), plain)
        with torch.autocast("cpu", dtype):
            assert_no_worse([compiled(image)], [model(image)], [exact])
        torch.testing.assert_close(compiled(image), plain)
    assert all(region.region.steps for region in regions())
