"""Ops of the host that are no steps of a region."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.torch.odd_ops import ODD, Odd, Placed


@pytest.mark.parametrize(
    "mask",
    [
        lambda x: torch.cumsum(x.new_ones(8, 1, 1), 0),
        lambda x: torch.tril(torch.full((12, 16), 0.5)),
        lambda x: torch.arange(16.0).flip(0).expand(12, 16),
        lambda x: torch.cumsum(torch.full_like(x, 0.1), 1).masked_fill(torch.zeros_like(x) == 0, 3.0),
    ],
)
def test_what_follows_from_shapes_alone_is_constant(mask, compile_model, agree, regions, image):
    model = Odd(lambda x: x + mask(x))
    compiled = compile_model(model)
    agree(compiled, model, image)
    (region,) = regions()
    assert not region.region.steps
    assert len(region.region.inputs) == 1
    torch._dynamo.reset()
    dynamic = compile_model(model, dynamic=True)
    for shape in [(2, 3, 12, 16), (1, 3, 12, 16)]:
        agree(dynamic, model, torch.randn(shape))


@pytest.mark.parametrize(
    "odd",
    [
        lambda x: x + torch.rand_like(x) * 0,
        lambda x: F.dropout(x, 0.5, training=True) * 0.0 + x,
        lambda x: torch.cumsum(x.double(), 2).float(),
        lambda x: torch.nonzero(x).sum().double() * 0.0 + x,
        lambda x: torch.as_strided(x, (2, 8, 12, 16), (1536, 192, 1, 12)),
        lambda x: torch.cat([x.view(torch.int32), x.view(torch.int32)], 1)[:, :8].view(torch.float32),
    ],
)
def test_what_is_no_function_of_its_tensors_stays_outside(odd, compile_model, agree, regions, image):
    model = Odd(odd)
    agree(compile_model(model, fullgraph=False), model, image)
    assert len(regions()) == 2
    assert not any(region.region.steps for region in regions())


def test_an_op_of_another_library_stays_outside(compile_model, agree, regions, image):
    with torch.library._scoped_library("softneuro_test", "FRAGMENT") as library:
        library.define("halve(Tensor x) -> Tensor")
        library.impl("halve", lambda x: x / 2, "CPU")
        library.impl("halve", torch.empty_like, "Meta")
        model = Odd(torch.ops.softneuro_test.halve)
        agree(compile_model(model), model, image)
    assert len(regions()) == 2


def test_a_tensor_that_is_changed_stays_outside(compile_model, image, regions):
    class Counting(Odd):
        def __init__(self):
            super().__init__(None)
            self.register_buffer("count", torch.zeros(8, 1, 1))

        def forward(self, x):
            x = self.before(x)
            self.count.add_(1)
            return self.after(torch.cumsum(x, 2) + self.count)

    model = Counting().eval()
    compiled = compile_model(model)
    with torch.no_grad():
        for call in range(1, 4):
            result = compiled(image)
            assert model.count.eq(call).all()
            reference = model.after(torch.cumsum(model.before(image), 2) + call)
            torch.testing.assert_close(result, reference)


def test_a_step_at_the_rim_stays_outside(compile_model, agree, regions, image):
    model = nn.Sequential(Odd(ODD["cumprod"]).before, nn.Softshrink())
    head = nn.Sequential(nn.Softshrink(), Odd(ODD["cumprod"]).before)
    for one in (model, head):
        agree(compile_model(one), one, image)
    assert not any(region.region.steps for region in regions())


def test_a_step_next_to_too_little_stays_outside(compile_model, agree, regions, image):
    model = nn.Sequential(Odd(None).before, nn.Softshrink(), nn.ReLU())
    agree(compile_model(model), model, image)
    assert not any(region.region.steps for region in regions())


def test_a_number_that_depends_on_values_stays_outside(compile_model, agree, regions, image):
    model = Placed(lambda x, places: torch.roll(x, int(places[0].item()), 3))
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = compile_model(model, fullgraph=False)
        for _ in range(3):
            agree(compiled, model, image, torch.randperm(8))
    assert not any(region.region.steps for region in regions())
