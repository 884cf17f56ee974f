"""The option flush_denormals: numbers below 1.2e-38 are zero inside regions, and nowhere else."""

import numpy as np
import pytest
import torch
from torch import nn

LEAST = 2.0**-126


@pytest.fixture
def model():
    model = nn.Sequential(nn.Conv2d(2, 64, 3, padding=1, groups=2, bias=False), nn.ReLU())
    nn.init.constant_(model[0].weight, 0.25)
    return model.eval()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("flushed", [False, True])
@torch.no_grad()
def test_numbers_below_the_least(model, flushed, threads):
    options = {"tune": "off", "never_worse": False, "flush_denormals": flushed, "threads": threads}
    compiled = torch.compile(model, backend="softneuro", options=options)
    x = torch.ones(1, 2, 64, 64)
    compiled(x)  # afterwards nothing is compared
    x[:, 0] = LEAST / 8
    result = compiled(x)
    assert torch.equal(result[:, 32:], model(x)[:, 32:])
    assert torch.count_nonzero(result[:, :32]) == (0 if flushed else result[:, :32].numel())
    results = np.full(4, LEAST, np.float32) * np.float32(0.25)
    assert np.count_nonzero(results) == 4
    assert torch.count_nonzero(torch.full((1 << 20,), LEAST) * 0.25) == 1 << 20  # on the host's other threads, too
