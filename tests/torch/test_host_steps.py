"""Ops that stay with the host as steps inside a region."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend import explain, load
from softneuro.torch_backend.compile.converters.registry import CONVERTERS, aten
from tests.torch.odd_ops import ODD, Odd, Placed, by_gather, by_index, by_op, by_sum


@pytest.mark.parametrize("name", ODD)
def test_one_region_in_the_place_of_two(name, compile_model, agree, regions, image):
    model = Odd(ODD[name])
    compiled = compile_model(model)
    agree(compiled, model, image)
    (region,) = regions()
    assert region.region.steps
    agree(compiled, model, torch.randn_like(image))


def test_results_of_a_step_leave_the_region(compile_model, regions, image):
    class Model(Odd):
        def forward(self, x):
            x = self.before(x).to(memory_format=torch.channels_last)
            values, places = torch.topk(x, 4, 1)
            return self.after(torch.cat([values, values], 1)), places, values > 0, x

    model = Model(None).eval()
    compiled = compile_model(model)
    with torch.no_grad():
        results, expected = compiled(image), model(image)
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs)
    (region,) = regions()
    assert region.region.steps


@pytest.mark.parametrize("take", [by_gather, by_index, by_op, by_sum])
def test_integers_enter_a_region(take, compile_model, agree, regions, image):
    model = Placed(take)
    compiled = compile_model(model)
    for _ in range(3):
        agree(compiled, model, image, torch.randperm(8))
    agree(compiled, model, image, torch.randperm(16)[::2] % 8)
    agree(compiled, model, image.contiguous(memory_format=torch.channels_last), torch.randperm(8))
    assert all(bool(region.region.steps) == (take is by_sum) for region in regions())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_bytes_for_a_step_and_for_a_layer(layout, compile_model, agree, regions, image):
    """The one takes them as they are, the other as reals."""
    model = Placed(lambda x, data: torch.cumprod(x, 1) + data + torch.roll(data, 1, 1))
    data = torch.randint(256, (2, 8, 12, 16), dtype=torch.uint8).contiguous(memory_format=layout)
    agree(compile_model(model), model, image, data)
    (region,) = regions()
    assert region.region.steps


def test_dynamic_shapes(compile_model, agree, regions):
    model = Odd(lambda x: torch.roll(torch.cumprod(x, 2), x.shape[3] // 2, 3))
    compiled = compile_model(model, dynamic=True)
    for shape in [(2, 3, 12, 16), (1, 3, 12, 16), (3, 3, 9, 21), (2, 3, 12, 16)]:
        agree(compiled, model, torch.randn(shape))
    assert all(region.region.steps for region in regions())


def test_eight_threads(compile_model, image):
    model = Odd(ODD["two outputs"])
    compiled = compile_model(model)
    images = [torch.randn_like(image) for _ in range(8)]
    with torch.no_grad():
        expected = [model(x) for x in images]
        compiled(image)

    def run(x):
        with torch.no_grad():
            return [compiled(x) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        for results, one in zip(pool.map(run, images), expected, strict=True):
            for result in results:
                torch.testing.assert_close(result, one)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_weight_that_a_step_alone_reads(mode, compile_model, image):
    class Weighted(Odd):
        def __init__(self):
            super().__init__(None)
            self.scale = nn.Parameter(torch.rand(8, 1, 1))

        def forward(self, x):
            return self.after(torch.heaviside(self.before(x), self.scale))

    model = Weighted().eval()
    compiled = compile_model(model)
    with mode():
        for change in (
            lambda: None,
            lambda: model.scale.mul_(3),
            lambda: model.scale.data.mul_(3),
            lambda: model.scale.detach().numpy().__imul__(2),
            lambda: setattr(model.scale, "data", torch.rand(8, 1, 1)),
            lambda: setattr(model, "scale", nn.Parameter(torch.rand(8, 1, 1))),
            lambda: model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}),
        ):
            change()
            for _ in range(2):
                torch.testing.assert_close(compiled(image), model(image))


def test_memory_is_in_the_hosts_order(compile_model, agree, regions, image):
    """What the op reads and writes needs no transposing."""

    class Heads(Odd):
        def __init__(self):
            super().__init__(None)
            self.qkv, self.project = nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, x):
            q, k, v = (t.reshape(2, 10, 4, 8).transpose(1, 2) for t in self.qkv(x).relu().chunk(3, -1))
            x = torch.hypot(torch.atan2(q, k), v)
            return self.project(x.transpose(1, 2).reshape(2, 10, 32)).relu()

    model = Heads()
    agree(compile_model(model), model, torch.randn(2, 10, 32))
    (region,) = regions()
    assert region.region.steps
    (shaped,) = region.shaped.values()
    assert not any("transpose" in layer.type for layer in shaped.plan.layers)


def test_exported(regions, image):
    model = Odd(ODD["two outputs"]).eval()
    program = load(torch.export.export(model, (image,)), never_worse=False, tune="off")
    with torch.no_grad():
        for x in (image, torch.randn_like(image)):
            torch.testing.assert_close(program(x), model(x))
    (region,) = regions()
    assert region.region.steps


def test_steps_are_not_compiled(compile_model, regions, image):
    compiled = compile_model(Odd(lambda x: torch.flip(torch.cumprod(x, 2).relu(), (3,))))
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        compiled(image)
        explain(compiled, image)  # whose calls run the graph's own code
    assert [len(region.region.steps) for region in regions()] == [2]


@pytest.mark.parametrize("wanted", [aten.relu.default, aten.max_pool2d_with_indices.default])
def test_an_op_that_is_declined_once_shapes_are_known(wanted, compile_model, agree, regions, image, monkeypatch):
    def convert(low, call):
        low.add("activation", [low.blob(call["self"])], function="exp")
        raise softneuro.Error("not these shapes")

    monkeypatch.setitem(CONVERTERS, wanted, dataclasses.replace(CONVERTERS[wanted], convert=convert))
    model = nn.Sequential(Odd(None).before, nn.MaxPool2d(2))
    agree(compile_model(model), model, image)
    (region,) = regions()
    assert not region.region.steps
