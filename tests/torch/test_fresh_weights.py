"""A change of a weight shows in the very next call, however it was made."""

import pytest
import torch
from torch import nn


def small():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3, stride=2)).eval()


@pytest.fixture
def ready(compile_model, agree):
    model = small()
    compiled = compile_model(model)
    x = torch.randn(1, 3, 12, 12)
    agree(compiled, model, x)
    return model, compiled, x


@torch.no_grad()
def in_place(model):
    model[0].weight.mul_(2)


@torch.no_grad()
def one_element(model):
    model[0].weight[1, 1, 1, 1] = 50.0


def load(model):
    model.load_state_dict(small().state_dict())


def load_assign(model):
    model.load_state_dict(small().state_dict(), assign=True)


def data_in_place(model):
    model[0].weight.data.mul_(2)


def data_replaced(model):
    model[0].weight.data = torch.randn_like(model[0].weight)


def parameter_replaced(model):
    model[0].weight = nn.Parameter(torch.randn_like(model[0].weight))


def submodule_replaced(model):
    model[1] = nn.Conv2d(8, 4, 3, stride=2).eval()


def through_numpy(model):
    model[0].bias.detach().numpy()[:] = 3.0


def swapped_and_back(model):
    kept = model[0].weight
    model[0].weight = nn.Parameter(kept.detach() * 3)
    del kept


CHANGES = [
    in_place,
    one_element,
    load,
    load_assign,
    data_in_place,
    data_replaced,
    parameter_replaced,
    submodule_replaced,
    through_numpy,
    swapped_and_back,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_change_shows(ready, agree, change):
    model, compiled, x = ready
    for _ in range(2):
        with torch.no_grad():
            before = model(x)
        change(model)
        agree(compiled, model, x)
        with torch.no_grad():
            assert not torch.equal(before, model(x)) or change is one_element or change is through_numpy


def test_refresh(ready, agree):
    from softneuro.torch_backend import refresh

    model, compiled, x = ready
    weight = model[1].weight.detach().numpy().reshape(-1)
    weight[7] += 5  # between the places that are looked at
    refresh(compiled)
    agree(compiled, model, x)


def test_two_models_of_one_class(compile_model, agree, entries):
    first, second = small(), small()
    compiled = compile_model(first), compile_model(second)
    x = torch.randn(1, 3, 12, 12)
    for _ in range(3):
        agree(compiled[0], first, x)
        agree(compiled[1], second, x)
    assert entries() == 2


def test_one_graph_for_many_blocks(compile_model, agree, entries):
    """Compiled code shared by equal blocks keeps one net per block."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x):
            return self.conv(x)

    class Tower(nn.Module):
        def __init__(self, compiled):
            super().__init__()
            options = {"never_worse": False, "tune": "off", "min_region_size": 1}
            self.blocks = nn.ModuleList(Block().eval() for _ in range(4))
            if compiled:
                for block in self.blocks:
                    block.compile(backend="softneuro", options=options)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    model, plain = Tower(True), Tower(False)
    plain.load_state_dict(model.state_dict())
    x = torch.randn(1, 4, 9, 9)
    for _ in range(3):
        agree(model, plain, x)
    assert entries() == 4
