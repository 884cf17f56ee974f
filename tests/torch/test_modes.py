"""torch.compile's modes, which libraries give whatever the backend is."""

import logging

import pytest
import torch

import softneuro
from softneuro.torch_backend import options


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead"])
def test_default(mode):
    assert options.parse({}, mode) == options.parse({})


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
def test_patience(mode):
    assert dict(options.parse({}, mode).texts)["time_budget_s"] == "60"
    assert dict(options.parse({"time_budget_s": 3}, mode).texts)["time_budget_s"] == "3.0"


def test_told_once(caplog):
    options._tell.cache_clear()
    with caplog.at_level(logging.INFO, logger="softneuro.torch_backend"):
        options.parse({}, "reduce-overhead")
        options.parse({}, "reduce-overhead")
    assert len([text for text in caplog.messages if "reduce-overhead" in text]) == 1


def test_unknown():
    with pytest.raises(softneuro.Error, match="no mode 'fastest': known are default"):
        options.parse({}, "fastest")


def test_compiled(no_grad):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).eval()
    x = torch.randn(3, 8)
    compiled = torch.compile(model, backend="softneuro", mode="reduce-overhead")
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
