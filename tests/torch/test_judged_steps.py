"""Steps of the host are measured, shown, and given up where a region with them loses."""

import pytest
import torch

import softneuro
from softneuro.torch_backend import explain, registry
from softneuro.torch_backend.call import judging
from tests.torch.odd_ops import ODD, Odd


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
