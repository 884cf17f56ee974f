"""A checkpoint that comes after tuning is held to `max_error`, too."""

import copy
import shutil

import pytest
import torch
from torch import nn

from softneuro.error_measure import relative_error
from softneuro.torch_backend.compile.ops.reals import numbers
from tests.torch.straight import Straight
from tests.tune.test_other_weights import INEXACT, make_inexact_fast


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.Conv2d(64, 64, 1, bias=False), nn.Conv2d(64, 64, 1, bias=False)
    ).eval()


def cancelling(model):
    """Weights whose outputs are small differences of large sums."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    first, second = state["0.weight"], state["1.weight"]
    first[1::2] = first[::2] * (1 + 1e-3 * torch.randn_like(first[::2]))
    second[:, 1::2] = -second[:, ::2]
    return state


@pytest.mark.parametrize("tune", ["profile", "cached"])
def test_a_checkpoint_loaded_in_place(tune, tmp_path, monkeypatch):
    model, x = network(), torch.randn(1, 64, 40, 40)
    with torch.no_grad():
        Straight(model, tune="profile")(x)
        make_inexact_fast()
        shutil.copytree(tmp_path, tmp_path / "again")  # plans of a database are known to the process
        monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "again"))
        Straight(model, tune="profile")(x)
        compiled = Straight(model, tune=tune)
        compiled(x)
        assert INEXACT.search(compiled.layers()[0])
        model.load_state_dict(cancelling(model))
        truth = copy.deepcopy(model).double()(x.double())
        plain = relative_error(numbers(model(x)), numbers(truth))
        for _ in range(3):
            assert relative_error(numbers(compiled(x)), numbers(truth)) < 3 * plain
        assert not INEXACT.search(compiled.layers()[0])  # whose error the others magnify
