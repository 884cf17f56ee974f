"""Steps of the host are measured, shown, and given up where a region with them loses."""

import gc
import weakref

import pytest
import torch

from softneuro.torch_backend import explain
from tests.torch.odd_ops import ODD, Odd


def test_explain_shows_steps(image):
    model = Odd(ODD["cumprod"]).eval()
    text = explain(model, image, never_worse=False, tune="off")
    assert "1 step(s) of the host" in text
    assert "stays with the host as a step: aten.cumprod.default x1" in text
    assert "host/cpu:float32:nchw/call" in text


def test_tuned(compile_model, agree, regions, image):
    model = Odd(ODD["sort"])
    agree(compile_model(model, tune="profile", time_budget_s=2), model, image, tolerance=1e-3)
    (region,) = regions()
    (shaped,) = region.shaped.values()
    (step,) = [layer for layer in shaped.plan.layers if layer.type == "host"]
    assert step.measured


@pytest.mark.parametrize("parts_win", [True, False])
def test_a_region_that_loses_is_cut_at_its_steps(parts_win, compile_model, slow, regions, image):
    slow("net", lambda region: region.region.steps or not parts_win)
    slow("host", lambda region: not region.region.steps and parts_win)
    model = Odd(ODD["cumprod"])
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
    cores = [weakref.ref(region.core) for region in regions()]
    assert len(cores) == 3
    del compiled, joined
    torch._dynamo.reset()
    gc.collect()
    assert not regions()
    assert all(core() is None for core in cores)
