"""How regions with quantizations are judged: by steps where results are rounded to them, else as others are."""

import numpy as np
import pytest
import torch
from torch import nn

from softneuro.error_measure import judged_error
from tests.torch.quantized_models import ByHand, on_grid
from tests.torch.straight import Straight

pytestmark = pytest.mark.usefixtures("no_grad")
X = torch.randn(2, 3, 9, 10, generator=torch.Generator().manual_seed(0))


def test_judging_allows_steps_alone():
    """Where something is rounded on the way: an output that has nothing to do with it is held to max_error."""
    host = np.random.default_rng(0).standard_normal(100)
    near, far, limit = host + 0.1 * np.roll(host, 1), 2 * host, 1e-4
    assert judged_error(near, host, None, True, limit) == 0
    assert judged_error(near, host, None, False, limit) == pytest.approx(0.1, rel=0.1)
    assert judged_error(far, host, None, True, limit) == pytest.approx(1)
    assert judged_error(np.full(3, np.nan), np.ones(3), None, True, limit) == np.inf
    # The host may be far from the truth itself: then a result may be as far, but not much farther.
    assert judged_error(far, host, 1.5 * host, True, limit) == 0
    assert judged_error(-host, host, 1.5 * host, True, limit) == pytest.approx(2)


def test_outputs_are_judged_one_by_one():
    class Model(nn.Module):
        def forward(self, x):
            x = torch.tanh(x)
            return torch.sigmoid(x + 1), torch.relu(on_grid(x * 2, 0.02, 128))

    compiled = Straight(Model())
    compiled(X)
    (region,) = compiled.graph.regions
    assert region.region.outputs_in_steps == [False, True]


def test_a_region_of_quantizations_may_err_by_steps(states):
    """Where max_error would leave any float region to the host."""
    model = ByHand()
    compiled = Straight(model, never_worse=True, max_error=1e-30, tune="profile", time_budget_s=1)
    compiled(X)
    assert not any("max_error" in (reason or "") for reason in states())
