"""Changes of a weight that nothing shows are found within the calls that are told."""

import logging

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from softneuro.torch_backend import calls_to_see_changes, explain, load
from tests.torch.conftest import OPTIONS

WARNING = "has been changed where neither"


def large():
    return nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)).eval()


def calls_until_right(compiled, model, x, most):
    """How many calls gave what the weights were before."""
    expected = model(x)
    for call in range(most):
        if torch.allclose(compiled(x), expected, rtol=1e-4, atol=1e-4):
            return call
    raise AssertionError(f"stale after {most} calls")


@pytest.mark.parametrize("door", ["compiled", "exported", "without short cuts"])
def test_found_in_time(door, compile_model, no_grad, caplog):
    model, x = large(), torch.randn(64, 256)
    if door == "exported":
        compiled = load(torch.export.export(model, (x,)), **OPTIONS)
    else:
        compiled = compile_model(model, shortcuts=door == "compiled")
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            compiled(x)
        bound = calls_to_see_changes(compiled)
        assert 0 < bound < 100_000
        for change in (lambda w: w.data[37].add_(1), lambda w: w.numpy()[100].fill(3.0)):
            before = caplog.text.count(WARNING)
            change(model[0].weight)
            # A look that is interrupted puts the next ones off.
            calls_until_right(compiled, model, x, max(10 * bound, 200))
            compiled(x)
            assert caplog.text.count(WARNING) == before + 1
        # What shows at once is no such change.
        model[0].weight.mul_(2)
        assert calls_until_right(compiled, model, x, 1) == 0
        for _ in range(2 * bound):
            compiled(x)
        assert caplog.text.count(WARNING) == 2
    assert "MiB of weights: a slice is compared at a time" in explain(compiled, x)


def test_nothing_to_look_for(compile_model, no_grad):
    """Each call compares all of a small weight."""
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).eval(), torch.randn(3, 4)
    compiled = compile_model(model)
    for _ in range(5):
        compiled(x)
    assert calls_to_see_changes(compiled) == 0


def test_products_of_weights(compile_model, no_grad):
    """Masks of pruning: the product is kept between calls, and made anew when a change is found."""
    model, x = large(), torch.randn(64, 256)
    prune.l1_unstructured(model[0], "weight", 0.9)
    compiled = compile_model(model)
    for _ in range(20):
        compiled(x)
    model[0].weight_orig.data[:, 5] = 7.0
    model[0].weight_mask.data[37] = 1.0
    calls_until_right(compiled, model, x, 10 * calls_to_see_changes(compiled))
    compiled(x)
    torch.testing.assert_close(model[0].weight, model[0].weight_orig * model[0].weight_mask)
