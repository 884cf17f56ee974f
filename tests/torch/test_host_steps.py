"""Ops that stay with the host as steps inside a region."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import softneuro
from softneuro.torch_backend import explain, judging, load, registry
from softneuro.torch_backend.converters.registry import CONVERTERS, aten

ODD = {
    "cumsum": lambda x: torch.cumsum(x, 2),
    "sort": lambda x: torch.sort(x, 3).values,
    "two outputs": lambda x: torch.sort(x, 3)[0] * 0.5 + torch.sort(x, 3)[1],
    "values by place": lambda x: torch.gather(x.flip(1), 1, torch.topk(x, 8, 1).indices),
    "moved places": lambda x: torch.gather(x, 1, torch.argsort(x, 1)[:, :1].expand(-1, 8, -1, -1)),
    "roll": lambda x: torch.roll(x, (1, 2), (2, 3)),
    "truth values": lambda x: torch.where(x > 0.1, x, x.flip(3)),
    "strange order": lambda x: torch.cumsum(x.permute(0, 2, 3, 1), 1).permute(0, 3, 1, 2),
    "several in a row": lambda x: torch.flip(torch.cumsum(torch.cumprod(x, 3), 2), (2, 3)),
    "a number of its own": lambda x: torch.searchsorted(torch.linspace(-1, 1, 20), x).float() + x,
    "attention": lambda x: (
        F.scaled_dot_product_attention(*(x.view(2, 4, 2, 192).transpose(1, 2) + i for i in range(3)))
        .transpose(1, 2)
        .reshape(2, 8, 12, 16)
    ),
    "a way around": lambda x: torch.cumsum(x, 2) + x,
}


class Odd(nn.Module):
    """An op without a converter between convolutions."""

    def __init__(self, odd):
        super().__init__()
        self.odd = odd
        self.before = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.after = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, x):
        return self.after(self.odd(self.before(x)))


@pytest.mark.parametrize("name", ODD)
def test_one_region_in_the_place_of_two(name, compile_model, agree, regions, image):
    model = Odd(ODD[name])
    compiled = compile_model(model)
    agree(compiled, model, image)
    (region,) = regions()
    assert region.region.steps
    agree(compiled, model, torch.randn_like(image))


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


class Placed(Odd):
    """Channels by places that the caller gives."""

    def forward(self, x, places):
        return self.after(self.odd(self.before(x), places))


def by_index(x, places):
    return x[:, places]  # raises IndexError


def by_op(x, places):
    return torch.index_select(x, 1, places)  # raises RuntimeError


@pytest.mark.parametrize("take", [by_index, by_op])
def test_integers_enter_a_region(take, compile_model, agree, regions, image):
    model = Placed(take)
    compiled = compile_model(model)
    for _ in range(3):
        agree(compiled, model, image, torch.randperm(8))
    agree(compiled, model, image, torch.randperm(16)[::2] % 8)
    agree(compiled, model, image.contiguous(memory_format=torch.channels_last), torch.randperm(8))
    assert all(region.region.steps for region in regions())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_bytes_for_a_step_and_for_a_layer(layout, compile_model, agree, regions, image):
    """The one takes them as they are, the other as reals."""
    model = Placed(lambda x, data: torch.cumsum(x, 1) + data + torch.roll(data, 1, 1))
    data = torch.randint(256, (2, 8, 12, 16), dtype=torch.uint8).contiguous(memory_format=layout)
    agree(compile_model(model), model, image, data)
    (region,) = regions()
    assert region.region.steps


@pytest.mark.parametrize(
    "odd",
    [
        lambda x: x + torch.rand_like(x) * 0,
        lambda x: F.dropout(x, 0.5, training=True) * 0.0 + x,
        lambda x: torch.cumsum(x.double(), 2).float(),
        lambda x: torch.nonzero(x).sum() * 0.0 + x,
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
    model = nn.Sequential(Odd(ODD["cumsum"]).before, nn.Softshrink())
    head = nn.Sequential(nn.Softshrink(), Odd(ODD["cumsum"]).before)
    for one in (model, head):
        agree(compile_model(one), one, image)
    assert not any(region.region.steps for region in regions())


def test_a_step_next_to_too_little_stays_outside(compile_model, agree, regions, image):
    model = nn.Sequential(Odd(None).before, nn.Softshrink(), nn.ReLU())
    agree(compile_model(model), model, image)
    assert not any(region.region.steps for region in regions())


def test_dynamic_shapes(compile_model, agree, regions):
    model = Odd(lambda x: torch.roll(torch.cumsum(x, 2), x.shape[3] // 2, 3))
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

    class Attention(Odd):
        def __init__(self):
            super().__init__(None)
            self.qkv, self.project = nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, x):
            q, k, v = (t.reshape(2, 10, 4, 8).transpose(1, 2) for t in self.qkv(x).relu().chunk(3, -1))
            x = F.scaled_dot_product_attention(q, k, v)
            return self.project(x.transpose(1, 2).reshape(2, 10, 32)).relu()

    model = Attention()
    agree(compile_model(model), model, torch.randn(2, 10, 32))
    (region,) = regions()
    assert region.region.steps
    (shaped,) = region.shaped.values()
    assert not any("transpose" in layer.type for layer in shaped.plan.layers)


def test_a_number_that_depends_on_values_stays_outside(compile_model, agree, regions, image):
    model = Placed(lambda x, places: torch.roll(x, int(places[0].item()), 3))
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = compile_model(model, fullgraph=False)
        for _ in range(3):
            agree(compiled, model, image, torch.randperm(8))
    assert not any(region.region.steps for region in regions())


def test_exported(regions, image):
    model = Odd(ODD["two outputs"]).eval()
    program = load(torch.export.export(model, (image,)), never_worse=False, tune="off")
    with torch.no_grad():
        for x in (image, torch.randn_like(image)):
            torch.testing.assert_close(program(x), model(x))
    (region,) = regions()
    assert region.region.steps


def test_steps_are_not_compiled(compile_model, regions, image):
    compiled = compile_model(Odd(lambda x: torch.roll(torch.cumsum(x, 2).relu(), 1, 3)))
    with torch.no_grad(), torch._dynamo.config.patch(error_on_recompile=True):
        compiled(image)
        explain(compiled, image)  # whose calls run the graph's own code
    assert [len(region.region.steps) for region in regions()] == [2]


def test_explain_shows_steps(image):
    model = Odd(ODD["cumsum"]).eval()
    text = explain(model, image, never_worse=False, tune="off")
    assert "1 step(s) of the host" in text
    assert "stays with the host as a step: aten.cumsum.default x1" in text
    assert "host/cpu:float32:nchw/call" in text


def test_tuned(compile_model, agree, regions, image):
    model = Odd(ODD["sort"])
    agree(compile_model(model, tune="profile", time_budget_s=2), model, image, tolerance=1e-3)
    (region,) = regions()
    (shaped,) = region.shaped.values()
    (step,) = [layer for layer in shaped.plan.layers if layer.type == "host"]
    assert step.measured


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


def lose(monkeypatch, parts_win):
    """Lets regions with steps lose, and others win or lose."""

    def compare(net, host, *_):
        net(), host()
        steps = [r for r in registry.all_regions() if r.region.steps and r.apart is None]
        return (2.0, 1.0, 0.0) if steps or not parts_win else (1.0, 2.0, 0.0)

    monkeypatch.setattr(judging, "compare", compare)


@pytest.mark.parametrize("parts_win", [True, False])
def test_a_region_that_loses_is_cut_at_its_steps(parts_win, compile_model, monkeypatch, regions, image):
    lose(monkeypatch, parts_win)
    model = Odd(ODD["cumsum"])
    options = {"never_worse": True, "tune": "profile", "time_budget_s": 1}
    compiled = compile_model(model, **options)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(image), model(image), rtol=1e-3, atol=1e-4)
        model.before[0].weight.mul_(2)
        model.after[0].weight.mul_(2)
        for _ in range(2):
            torch.testing.assert_close(compiled(image), model(image), rtol=1e-3, atol=1e-4)
    joined = [region for region in regions() if region.region.steps]
    assert len(joined) == 1
    assert len(joined[0].parts) == 2
    found = [shaped.host for part in joined[0].parts for shaped in part.shaped.values()]
    assert [host is None for host in found] == [parts_win] * 2
    text = explain(compiled, image)
    assert "in its place, without the step(s): 2 region(s)" in text
    handles = [region.handle for region in regions()]
    assert len(handles) == 3
    del compiled, joined
    torch._dynamo.reset()
    assert not regions()
    assert all(softneuro._C.region_entries(handle) == 0 for handle in handles)
