"""Instance normalisation is a layer of a region; so is a batch's that has no running statistics."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softneuro.torch_backend import explain, load
from tests.torch.conftest import OPTIONS
from tests.torch.straight import Every, Straight

SHAPES = {1: (2, 6, 7), 2: (2, 6, 7, 9), 3: (2, 6, 5, 4, 3)}
INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
BATCH = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
NORMS = {
    "plain": lambda axes: INSTANCE[axes](6),
    "affine": lambda axes: INSTANCE[axes](6, affine=True),
    "running statistics": lambda axes: INSTANCE[axes](6, affine=True, track_running_stats=True),
    "batch": lambda axes: BATCH[axes](6, track_running_stats=False),
}


class Normed(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm
        for tensor in (*norm.parameters(), *norm.buffers()):
            if tensor.dtype == torch.float32:
                nn.init.uniform_(tensor, 0.5, 2)

    def forward(self, x):
        return (self.norm(x * 2) + 1).relu() * 3


def _host(model, *inputs):
    return [line for line in explain(model, *inputs).splitlines() if "aten." in line]


def test_layers_of_regions(all_agree):
    cases = {
        f"{name}, {axes} axes": (Normed(norm(axes)).eval(), torch.randn(shape))
        for name, norm in NORMS.items()
        for axes, shape in SHAPES.items()
    }
    every = Every(cases)
    all_agree(Straight(every), every)


@pytest.mark.parametrize("name", ["affine", "batch"])
def test_one_region(name, compile_model, agree, regions):
    model = Normed(NORMS[name](2)).eval()
    compiled = compile_model(model)
    x = torch.randn(SHAPES[2])
    agree(compiled, model, x)
    assert not _host(compiled, x)
    assert len(regions()) == 1


CHANGED = [(2, 6, 7, 9), (1, 6, 7, 3), (5, 6, 7, 21)]


def test_dynamic_shapes(all_agree):
    every = Every({name: (Normed(norm(2)).eval(), torch.randn(SHAPES[2])) for name, norm in NORMS.items()})
    compiled = Straight(every, dynamic=True)
    for shape in CHANGED:
        all_agree(compiled, every, [torch.randn(shape) for _ in NORMS])


@pytest.mark.parametrize("door", ["compiled", "exported"])
def test_dynamic_shapes_through_doors(door, compile_model, agree):
    model, x = Normed(NORMS["running statistics"](2)).eval(), torch.randn(SHAPES[2])
    if door == "exported":
        dims = ({0: torch.export.Dim("batch", min=1, max=8), 3: torch.export.Dim("width", min=2, max=64)},)
        ours = load(torch.export.export(model, (x,), dynamic_shapes=dims), **OPTIONS)
    else:
        ours = compile_model(model, dynamic=True)
    for shape in CHANGED:
        agree(ours, model, torch.randn(shape))
    assert not _host(ours, x)


def test_channels_that_are_not_known(agree):
    class Plain(nn.Module):
        def forward(self, x):
            return (F.instance_norm(x * 2) + 1).relu()

    model, x = Plain().eval(), torch.randn(SHAPES[2])
    dims = ({1: torch.export.Dim("channels", min=2, max=64)},)
    ours = load(torch.export.export(model, (x,), dynamic_shapes=dims), **OPTIONS)
    for channels in (6, 3, 17):
        agree(ours, model, torch.randn(2, channels, 7, 9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_halves_and_channels_last(dtype, all_agree):
    x = torch.randn(SHAPES[2], dtype=dtype).contiguous(memory_format=torch.channels_last)
    every = Every({name: (Normed(norm(2)).eval().to(dtype), x) for name, norm in NORMS.items()})
    all_agree(Straight(every), every, tolerance=1e-5 if dtype == torch.float32 else 2e-2)


def test_inductor_host(compile_model, agree):
    model = Normed(nn.InstanceNorm2d(6, affine=True)).eval()
    agree(compile_model(model, host="inductor"), model, torch.randn(SHAPES[2]))


def test_running_statistics_that_are_written(compile_model, agree):
    model = Normed(nn.InstanceNorm2d(6, affine=True, track_running_stats=True))
    twin, x = copy.deepcopy(model), torch.randn(SHAPES[2])
    compiled = torch.compile(twin.train(), backend="softneuro", options=OPTIONS)
    for _ in range(2):
        agree(compiled, model.train(), x, nets=False)
        torch.testing.assert_close(twin.norm.running_mean, model.norm.running_mean)
        torch.testing.assert_close(twin.norm.running_var, model.norm.running_var)


def test_what_the_host_refuses(compile_model):
    model = Normed(nn.InstanceNorm2d(6))
    for bad in (torch.randn(2, 6, 1, 1), torch.randn(2, 6, 7, 9, 3)):
        with torch.no_grad(), pytest.raises((RuntimeError, ValueError)):
            model(bad)
        with torch.no_grad(), pytest.raises((RuntimeError, ValueError, torch._dynamo.exc.TorchDynamoException)):
            compile_model(model)(bad)
