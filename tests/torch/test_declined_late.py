"""Ops that a converter declines once shapes are known: steps of the region, or what it is split around."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import softneuro
from softneuro.torch_backend import explain, load
from softneuro.torch_backend.compile.conversion import lowering
from softneuro.torch_backend.compile.converters.registry import CONVERTERS, aten
from softneuro.torch_backend.compile.host import host_steps
from tests.torch.conftest import OPTIONS
from tests.torch.odd_ops import Odd
from tests.torch.straight import Every, Straight
from tests.torch.test_converters import FUNCTIONS, MODULES, image

KEPT = {aten.mul.Tensor, aten.sigmoid.default}
CASES = {
    **{
        name: (FUNCTIONS[name], image()) for name in ("max_pool", "split", "unbind", "stack", "minimum", "softmax_last")
    },
    **MODULES,
}


def _decline(monkeypatch, error, *targets):
    def convert(low, call):
        source = next(v for v in call.args.values() if isinstance(v, torch.fx.Node | list))
        low.add("activation", [low.blob(source[0] if isinstance(source, list) else source)], function="exp")
        raise error

    for target in targets:
        monkeypatch.setitem(CONVERTERS, target, dataclasses.replace(CONVERTERS[target], convert=convert))


def _between(cases):
    return Every(cases, lambda x: torch.sigmoid(x * 1.5), lambda y: torch.sigmoid(y) * 2)


@pytest.mark.parametrize(
    "error", [TypeError("an attribute of another type"), softneuro.Error("not these shapes")], ids=str
)
def test_any_converter(error, all_agree, monkeypatch):
    """Whatever a converter raises, the region has its net."""
    _decline(monkeypatch, error, *(target for target in CONVERTERS if target not in KEPT))
    every = _between(CASES)
    all_agree(Straight(every, min_region_size=1), every, steps=True)


def test_a_check_that_raises(compile_model, monkeypatch):
    """The op stays with the host, and what it raised is told."""

    def check(call):
        raise KeyError("kernel")

    raising = dataclasses.replace(CONVERTERS[aten.tanh.default], check=check)
    monkeypatch.setitem(CONVERTERS, aten.tanh.default, raising)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).eval(), torch.randn(2, 4)
    text = explain(compile_model(model), x)
    assert "aten.tanh.default x1 (1): its check raised KeyError: 'kernel'" in text
    with torch.no_grad():
        torch.testing.assert_close(compile_model(model)(x), model(x))


def test_another_shape_than_the_hosts(all_agree, monkeypatch):
    wrong = dataclasses.replace(CONVERTERS[aten.relu.default], convert=lambda low, call: low.add(
        "transpose", [low.blob(call["self"])], perm=[0, 1, 3, 2]))  # fmt: skip
    monkeypatch.setitem(CONVERTERS, aten.relu.default, wrong)
    every = _between({"relu": (F.relu, image())})
    all_agree(Straight(every), every, steps=True)


REFUSED = {
    "nearest x1.5": lambda x: F.interpolate(x, scale_factor=1.5),
    "nearest x0.5": lambda x: F.interpolate(x, scale_factor=0.5),
    "a crop that mirrors": lambda x: F.pad(x, (-1, 1, 1, -1), mode="reflect"),
    "a window beyond the image": lambda x: F.max_pool2d(x, (15, 3), stride=(2, 1), padding=(1, 1), ceil_mode=True),
    "softmax of a number": lambda x: x * F.softmax(x.mean(), 0),
    "a norm without its batch": lambda x: F.batch_norm(x, torch.zeros(8), torch.ones(8), eps=0.0),
}


@pytest.mark.parametrize("dynamic", [False, True])
def test_one_op_leaves_the_rest_in_regions(dynamic, all_agree):
    shapes = [(2, 3, 13, 16), (2, 3, 13, 21), (1, 3, 13, 8)]
    every = Every({name: (Odd(odd).eval(), torch.randn(shapes[0])) for name, odd in REFUSED.items()})
    compiled = Straight(every, dynamic=dynamic)
    for shape in shapes if dynamic else shapes[:1]:
        all_agree(compiled, every, [torch.randn(shape) for _ in REFUSED], steps=True)


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_at_the_rim(place, dtype, agree, monkeypatch):
    _decline(monkeypatch, softneuro.Error("not these shapes"), aten.tanh.default)
    layers = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)]
    model = nn.Sequential(*([nn.Tanh(), *layers] if place == "first" else [*layers, nn.Tanh()])).to(dtype).eval()
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    agree(Straight(model), model, torch.randn(2, 3, 9, 8, dtype=dtype), tolerance=tolerance)


@pytest.mark.parametrize("door", ["compiled", "exported", "inductor"])
def test_what_cannot_be_a_step_splits_the_region(door, compile_model, agree, regions, monkeypatch):
    x = torch.randn(2, 3, 9, 8)
    model = nn.Sequential(Odd(None).before, nn.Tanh(), nn.Conv2d(8, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    _decline(monkeypatch, softneuro.Error("not these shapes"), aten.tanh.default)

    def reason(node, *rest):
        return "a reason of this test" if node.target is aten.tanh.default else host_steps.step_reason(node, *rest)

    monkeypatch.setattr(lowering, "step_reason", reason)
    if door == "exported":
        ours = load(torch.export.export(model, (x,)), **OPTIONS)
    else:
        ours = compile_model(model, host="inductor" if door == "inductor" else "eager")
    for _ in range(3):
        agree(ours, model, x, nets=False)
    (whole,) = (region for region in regions() if region.parts)
    assert [shaped.host for part in whole.parts for shaped in part.shaped.values()] == [None, None]
    text = explain(ours, x)
    assert "aten.tanh.default x1" in text
    assert "not these shapes" in text
    assert "a reason of this test" in text


def test_a_region_that_loses_is_cut_there(compile_model, monkeypatch, regions, slow):
    _decline(monkeypatch, softneuro.Error("not these shapes"), aten.tanh.default)
    slow("net", lambda region: region.region.declined)
    slow("host", lambda region: not region.region.declined)
    model, x = Odd(torch.tanh), torch.randn(2, 3, 12, 16)
    compiled = compile_model(model, never_worse=True, tune="profile", time_budget_s=1)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-3, atol=1e-4)
    (whole,) = (region for region in regions() if region.parts)
    assert [shaped.host for part in whole.parts for shaped in part.shaped.values()] == [None, None]


def test_constants_of_any_type_for_a_step(compile_model, agree, regions):
    model = Odd(lambda x: torch.remainder(x, torch.tensor(0.3, dtype=torch.float64)))
    agree(compile_model(model), model, torch.randn(2, 3, 12, 16))
    (region,) = regions()
    assert region.region.steps
