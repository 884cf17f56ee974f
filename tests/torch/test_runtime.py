"""Shapes, layouts, copies and lifetimes: what programs do with a compiled model."""

import copy
import gc
import pickle

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend import load, registry
from tests.torch.conftest import OPTIONS


def test_dynamic_batch_and_size(model, compile_model, agree, entries):
    compiled = compile_model(model, dynamic=True)
    shapes = [(2, 3, 12, 12), (3, 3, 12, 12), (5, 3, 17, 21), (2, 3, 12, 12), (1, 3, 9, 40)]
    for shape in shapes:
        agree(compiled, model, torch.randn(shape))
    assert entries() >= 3


def test_recompiled_for_a_second_shape(model, compile_model, agree):
    compiled = compile_model(model)
    for shape in [(1, 3, 12, 12), (4, 3, 12, 12), (7, 3, 14, 14), (1, 3, 12, 12)]:
        agree(compiled, model, torch.randn(shape))


def test_channels_last(model, compile_model, agree):
    x = torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)
    agree(compile_model(model), model, x)
    last = copy.deepcopy(model).to(memory_format=torch.channels_last)
    agree(compile_model(last), last, x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, :, ::2, 1:],
        lambda x: x.transpose(2, 3),
        lambda x: x[:, :, :1].expand(2, 3, 12, 12),
        lambda x: torch.randn(2, 3, 12, 24)[..., ::2],
    ],
)
def test_other_strides(model, compile_model, agree, view):
    agree(compile_model(model), model, view(torch.randn(2, 3, 12, 12)))


def test_inference_mode(model, compile_model):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    with torch.inference_mode():
        result = compiled(x)
        assert result.is_inference()
        torch.testing.assert_close(result, model(x))
        model.first.weight.data.mul_(2)
        torch.testing.assert_close(compiled(x), model(x))


def test_same_result_every_time(model, compile_model):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 33, 33)
    with torch.no_grad():
        results = [compiled(x) for _ in range(5)]
    assert all(torch.equal(results[0], other) for other in results[1:])
    assert len({r.data_ptr() for r in results}) == 5


def test_copy_and_pickle_of_the_model(model, compile_model, agree):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    agree(compiled, model, x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        agree(compile_model(other), other, x)
    copied = copy.deepcopy(compiled)
    with torch.no_grad():
        copied._orig_mod.first.weight.mul_(2)
        torch.testing.assert_close(copied(x), copied._orig_mod(x))
        torch.testing.assert_close(compiled(x), model(x))


def test_reset_frees_regions(model, compile_model, agree, states):
    compiled = compile_model(model)
    agree(compiled, model, torch.randn(1, 3, 12, 12))
    assert states()
    torch._dynamo.reset()
    gc.collect()
    assert states() == []
    agree(compiled, model, torch.randn(1, 3, 12, 12))


def test_inductor_host(model, compile_model, agree):
    def function(x):
        return model(x.flip(2)).flip(1)

    agree(compile_model(function, host="inductor"), function, torch.randn(2, 3, 12, 12))


def test_rest_on_the_host(model, compile_model, agree):
    def function(x):
        y = torch.erfinv(model.first(x).clamp(-0.9, 0.9))
        return model.second(y).cumprod(1), y

    agree(compile_model(function), function, torch.randn(2, 3, 12, 12))


class Branches(nn.Module):
    """Regions that pass results to each other, beside what the host does between them."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(4))

    def forward(self, x):
        for conv in self.convs:
            x = conv(x).double().cumsum(1).float() + conv(x)
        return x


@pytest.mark.parametrize("door", ["compiled", "exported"])
def test_nothing_runs_twice(door, compile_model, agree):
    model, x, before = Branches().eval(), torch.randn(1, 3, 8, 8), registry.all_regions()
    if door == "exported":
        ours = load(torch.export.export(model, (x,)), min_region_size=1, **OPTIONS)
    else:
        ours = compile_model(model, min_region_size=1)
    agree(ours, model, x)
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ours(x)
    names = {event.name for event in profile.events()}
    handles = [region.handle for region in registry.all_regions() if region not in before]
    assert len(handles) > 4
    assert names.issuperset(f"softneuro::{handle}" for handle in handles)
    assert "aten::cumsum" in names
    assert not {"aten::convolution", "aten::add"} & names


def test_nothing_to_do(compile_model, states):
    def function(x):
        return torch.erfinv(x).cumprod(0)

    x = torch.rand(5)
    with torch.no_grad():
        assert torch.equal(compile_model(function)(x), function(x))
    assert states() == []


def test_input_changed_in_place(model, compile_model):
    def function(x):
        y = model(x)
        x.add_(1)
        return y

    x = torch.randn(1, 3, 12, 12)
    ours, theirs = x.clone(), x.clone()
    with torch.no_grad():
        torch.testing.assert_close(compile_model(function)(ours), function(theirs))
    assert torch.equal(ours, theirs)


def test_outputs_alias_nothing(model, compile_model):
    def function(x):
        y = model.first(x)
        return y, y.view(-1), x.view(-1), y

    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        y, flat, view, again = compile_model(function)(x)
        expected = model.first(x)
    torch.testing.assert_close(y, expected)
    assert flat.data_ptr() == y.data_ptr() == again.data_ptr()
    assert view.data_ptr() == x.data_ptr()


def test_profiler_names_the_region(model, compile_model):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        compiled(x)
        with torch.profiler.profile() as profile:
            compiled(x)
    assert any("softneuro::" in event.key for event in profile.key_averages())


def test_another_shape_is_not_tuned(model, compile_model, agree, monkeypatch):
    compiled = compile_model(model, dynamic=True, tune="profile", time_budget_s=0.5)
    agree(compiled, model, torch.randn(2, 3, 12, 12))
    monkeypatch.setattr(softneuro, "tune", lambda *_, **__: pytest.fail("tuned again"))
    for shape in [(5, 3, 12, 12), (2, 3, 31, 17), (64, 3, 9, 9)]:
        agree(compiled, model, torch.randn(shape))


def test_huge_batch(compile_model, agree):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2, 3)).eval()
    compiled = compile_model(model, dynamic=True)
    for batch in (2, 70000):
        agree(compiled, model, torch.randn(batch, 1, 3, 3))
