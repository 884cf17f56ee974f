"""The short cuts around a call have one switch, and another torch goes without. Results are the same, bit by bit."""

import pytest
import torch
from torch import nn

from softneuro import torch_backend
from softneuro.torch_backend import _native
from softneuro.torch_backend.freshness import fetching, guards, tensors
from tests.torch.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("no_grad")


class Model(nn.Module):
    """With statistics, and a layer and a weight that are used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.twice, self.last = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)
        self.last.weight = self.twice.weight

    def forward(self, x):
        return self.last(self.twice(self.twice(self.norm(self.first(x)).relu())))


def set_data(tensor, data):
    tensor.data = data


CHANGES = {
    "nothing": lambda m: None,
    "written": lambda m: m.first.weight.mul_(2),
    "one element": lambda m: m.twice.weight[1, 1].add_(3),
    "statistics": lambda m: m.norm.running_mean.add_(1),
    "past the counter": lambda m: m.last.bias.data.add_(1),
    "data": lambda m: set_data(m.first.bias, torch.ones(8)),
    "parameter": lambda m: setattr(m.twice, "bias", nn.Parameter(torch.ones(8))),
    "no longer shared": lambda m: setattr(m.last, "weight", nn.Parameter(torch.ones(8, 8, 1, 1))),
    "parameter of a module": lambda m: m.norm.load_state_dict({k: v + 1 for k, v in m.norm.state_dict().items()}),
    "module": lambda m: setattr(m, "norm", nn.Identity()),
    "attribute": lambda m: setattr(m.first, "padding", (0, 0)),
}


@pytest.fixture
def taken(monkeypatch):
    """Which of the short cuts have been taken."""
    found: set[str] = set()

    def note(where, name, what):
        original = getattr(where, name)

        def noted(*arguments, **named):
            found.add(what)
            return original(*arguments, **named)

        monkeypatch.setattr(where, name, noted)

    note(guards.ModulesUnchanged, "__init__", "guards")
    note(fetching.FetchingCall, "__init__", "fetching")
    note(tensors, "fields_for", "tensors read")
    note(_native, "known_call", "known call")
    yield found
    tensors.fields.cache_clear()


def results(door, options) -> list[torch.Tensor]:
    """Results of three calls after each change, where the third has all that the first two have left."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x, found = Model().eval(), torch.randn(2, 3, 9, 9), []
    if door == "compiled":
        call = torch.compile(model, backend="softneuro", fullgraph=True, options={**OPTIONS, **options})
    else:
        call = torch_backend.load(torch.export.export(model, (x,)), **OPTIONS, **options)
    for change in CHANGES.values():
        change(model)
        found += [call(x) for _ in range(3)]
        if door == "compiled":
            torch.testing.assert_close(found[-1], model(x), rtol=1e-4, atol=1e-4)
    return found


def another_torch(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.999.0")


def changes_do_not_show(monkeypatch):
    monkeypatch.setattr(tensors, "_tells_changes", lambda _: False)


def switched_off(_):
    pass


@pytest.mark.parametrize("door", ["compiled", "exported"])
@pytest.mark.parametrize("why", [another_torch, changes_do_not_show, switched_off])
def test_results_are_the_same_without(door, why, taken, monkeypatch) -> None:
    everything = results(door, {})
    known = {"tensors read", "known call"}
    assert taken == (known | {"guards", "fetching"} if door == "compiled" else known)
    taken.clear()
    tensors.fields.cache_clear()
    why(monkeypatch)
    plain = results(door, {"shortcuts": False} if why is switched_off else {})
    assert not taken
    for one, other in zip(everything, plain, strict=True):
        assert torch.equal(one, other)
