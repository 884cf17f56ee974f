"""Never worse, at torch's door: verdicts on regions, and what is remembered of them."""

import gc

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend import registry
from softneuro.torch_backend.call import runtime

JUDGED = {"never_worse": True, "tune": "profile", "time_budget_s": 1}


def test_losing_costs_little(compile_model, slow, monkeypatch):
    """A region that stays with the host neither prepares nor compares again."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 9, 9)
    compiled = compile_model(model, **JUDGED)
    slow("net")
    with torch.no_grad():
        compiled(x)
        monkeypatch.setattr(runtime.RegionRuntime, "lower", lambda *_: pytest.fail("prepared again"))
        monkeypatch.setattr(runtime.Call, "__init__", lambda *_: pytest.fail("asked again"))
        assert torch.equal(compiled(x), model(x))


def test_never_worse(model, compile_model, states):
    compiled = compile_model(model, **JUDGED)
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        torch.testing.assert_close(compiled(x), model(x))
    assert len(states()) == 1


def test_error_above_the_budget_leaves_it_to_the_host(model, compile_model, states):
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        result = compile_model(model, **{**JUDGED, "max_error": 1e-30})(x)
        torch.testing.assert_close(result, model(x))
    assert all("max_error" in reason for reason in states())


@pytest.mark.parametrize("errors", [[3e-4, 2e-5], [3e-4, 3e-4, 3e-4, 3e-4]])
def test_a_plan_too_inexact_on_real_inputs_is_not_run(model, compile_model, states, monkeypatch, errors):
    """Another is chosen if there is one that errs less."""
    judged = []

    def error(*_):
        judged.append(errors[len(judged)])
        return judged[-1]

    monkeypatch.setattr(runtime.Call, "error", error)
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        result = compile_model(model, **JUDGED)(x)
        torch.testing.assert_close(result, model(x))
    assert judged[0] == 3e-4
    assert all("max_error" in reason for reason in states()) == (judged[-1] > 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_only_one_of_both_has_finite_is_an_error(dtype, compile_model):
    compiled = compile_model(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).to(dtype))
    with torch.no_grad():
        compiled(torch.ones(1, 2, dtype=dtype))
    call = runtime.Call(registry.all_regions()[-1], [], [], [])
    finite, other = torch.tensor([1.0, 2.0], dtype=dtype), torch.tensor([1.0, float("nan")], dtype=dtype)
    for call.nets, call.hosts in (([finite], [other]), ([other], [finite])):
        call._truths = [call.hosts[0].float()]
        assert call.error(1e-4) == float("inf")
    call.nets, call.hosts, call._truths = [other], [other], []
    assert call.error(1e-4) == 0
    call.nets, call.hosts = [finite], [finite * 1.5]
    assert call.error(1e-4) == pytest.approx(1 / 3)


@pytest.mark.parametrize("loser", ["net", "host"])
def test_verdict_is_remembered(loser, model, compile_model, states, slow, monkeypatch, tmp_path):
    """A warm start neither measures nor changes its mind."""
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        slow(loser)
        judged = {**JUDGED, "plan": str(tmp_path / "plan")}  # of which it is the verdict
        compile_model(model, **judged)(x)
        assert [reason is None for reason in states()] == [loser == "host"]
        torch._dynamo.reset()
        gc.collect()
        monkeypatch.setattr(runtime.Call, "error", lambda *_: pytest.fail("measured again"))
        compile_model(model, **{**judged, "tune": "cached"})(x)
    assert [reason is None for reason in states()] == [loser == "host"]


def test_another_shape_is_judged_by_its_calls(compile_model, states, slow):
    """By calls that are wanted anyway; every one of them gives the host's result."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()
    compiled = compile_model(model, dynamic=True, **JUDGED)
    slow("host", seconds=0.02)
    with torch.no_grad():
        compiled(torch.randn(1, 3, 20, 24))
        (region,) = registry.all_regions()[-1:]
        for _ in range(20):
            x = torch.randn(1, 3, 21, 24)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        assert states() == [None, None]
        assert region.core.nets == 2
        hits = region.core.hits
        compiled(x)
        assert region.core.hits == hits + 1


def test_many_shapes_are_not_taken_for_changed_weights(compile_model, slow):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    compiled = compile_model(model, dynamic=True, **JUDGED)
    slow("host", seconds=0.005)
    with torch.no_grad():
        for _ in range(3):
            for size in range(40):
                x = torch.randn(1, 3, 12 + size, 12)
                torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    (region,) = registry.all_regions()[-1:]
    assert region.given_up is None
    assert len(region.shaped) == 40


def test_the_first_call_of_a_shape_that_recurs_needs_credit(compile_model, states):
    """With nothing measured, too, a shape seen once is not prepared for."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    compiled = compile_model(model, dynamic=True, never_worse=True, tune="off")
    with torch.no_grad():
        compiled(torch.randn(1, 3, 12, 12))
        (region,) = registry.all_regions()[-1:]
        for size in range(13, 20):
            compiled(torch.randn(1, 3, size, 12))
        assert region.core.nets == 1


def test_bindings_of_the_runtime():
    region = softneuro._C.Region("name", "content", "host", {})
    assert (region.nets, region.hits, region.held_up, region.shapes()) == (0, 0, "", [])
    assert region.credit_ns == 50_000_000
