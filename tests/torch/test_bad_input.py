"""Whatever comes, the result or the error is eager's."""

import contextlib
import re

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend.call.runtime import RegionRuntime


@pytest.fixture
def model():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()


@pytest.mark.parametrize("shape", [(0, 3, 12, 12), (2, 3, 5, 5)])
@pytest.mark.parametrize("dynamic", [True, False])
def test_empty_and_smallest(model, compile_model, shape, dynamic):
    compiled = compile_model(model, dynamic=dynamic)
    with torch.no_grad():
        for x in (torch.randn(2, 3, 12, 12), torch.randn(shape), torch.randn(3, 3, 12, 12)):
            torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("shape", [(1, 3, 4, 4), (1, 3, 0, 9), (1, 4, 9, 9), (3, 9), (1, 1, 3, 9, 9)])
def test_impossible_shapes_raise(model, compile_model, shape):
    x = torch.randn(shape)
    with torch.no_grad():
        with pytest.raises(RuntimeError):
            model(x)
        with pytest.raises(Exception, match=""):
            compile_model(model)(x)
        good = torch.randn(1, 3, 9, 9)
        torch.testing.assert_close(compile_model(model)(good), model(good))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nonfinite_values_propagate(model, compile_model, value):
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    x[0, 1, 5, 5] = value
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), equal_nan=True)
        x[0, 1, 5, 5] = 0
        model[0].weight[2, 1, 1, 1] = value
        torch.testing.assert_close(compiled(x), model(x), equal_nan=True)


def test_model_that_raises(model, compile_model):
    def function(x):
        y = model(x)
        raise ValueError("on purpose")
        return y

    for _ in range(2):
        with pytest.raises(ValueError, match="on purpose"):
            compile_model(function, fullgraph=False)(torch.randn(1, 3, 12, 12))


@pytest.mark.parametrize("error", [softneuro.Error("no memory"), MemoryError()])
def test_preparation_that_fails_leaves_it_to_the_host(model, compile_model, states, monkeypatch, caplog, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(RegionRuntime, "lower", fail)
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        assert torch.equal(compile_model(model)(x), model(x))
    assert "the host runs it" in caplog.text
    assert len(states()) == 1
    assert states()[0] is not None


def test_unwritable_cache(model, compile_model, agree, monkeypatch):
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", "/proc/nowhere")
    agree(compile_model(model, tune="profile", time_budget_s=0.1), model, torch.randn(1, 3, 12, 12))


@pytest.mark.parametrize("option", ["min_region_sise", "max_eror", "thread"])
def test_misspelt_option(model, option):
    nearest = {"min_region_sise": "min_region_size", "max_eror": "max_error", "thread": "threads"}[option]
    with pytest.raises(Exception, match=nearest):
        torch.compile(model, backend="softneuro", options={option: 1})(torch.randn(1, 3, 12, 12))


@pytest.mark.parametrize("options", [{"max_error": 0}, {"max_error": -1}, {"tune": "sometimes"}, {"host": "cuda"}])
def test_option_out_of_range(model, options):
    with pytest.raises(Exception, match=next(iter(options))), torch.no_grad():
        torch.compile(model, backend="softneuro", options=options)(torch.randn(1, 3, 12, 12))


@pytest.mark.parametrize(
    "options",
    [
        {"plan": None},
        {"plan": True},
        {"max_error": True},
        {"max_error": [1e-4]},
        {"threads": True},
        {"threads": 1.5},
        {"schemas": 3},
        {"schemas": [3]},
        {"tune": 1},
        {"never_worse": 0.5},
    ],
    ids=str,
)
def test_option_of_another_type(model, options):
    name, value = next(iter(options.items()))
    with pytest.raises(Exception, match=re.escape(f"option {name}={value!r} is not of type")), torch.no_grad():
        torch.compile(model, backend="softneuro", options=options)(torch.randn(1, 3, 12, 12))


def test_options_without_names():
    with pytest.raises(softneuro.Error, match="by name"):
        softneuro.tune(softneuro.Graph(), ["a"])
    with pytest.raises(softneuro.Error, match="1 is not the name"):
        softneuro.tune(softneuro.Graph(), {1: 2})


def test_unknown_region():
    from softneuro.torch_backend import ops

    ops.load()
    with pytest.raises(RuntimeError, match="not known in this process"):
        torch.ops.softneuro.run_region("feed.0", [torch.randn(2)], [], [])


def test_no_net_is_ready_for_what_nobody_knows():
    from torch._subclasses import FakeTensorMode

    from softneuro.torch_backend import ops

    ops.load()
    for mode in (contextlib.nullcontext(), FakeTensorMode()):
        with mode:
            assert torch.ops.softneuro.run_known("feed.0", [torch.randn(2)], 1, 0, []) == []
