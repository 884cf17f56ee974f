"""Models that torch's export flow has quantized: claimed whole, and right to the step."""

import logging

import pytest
import torch
from torch import nn

from softneuro.error_measure import relative_error
from softneuro.torch_backend import explain, load
from tests.torch.conftest import OPTIONS
from tests.torch.quantized_models import pt2e, with_grids
from tests.torch.told import host_computes

logging.getLogger("torchao").setLevel(logging.ERROR)
pytestmark = pytest.mark.usefixtures("no_grad")


def conv(inputs, outputs, kernel=1, act=nn.ReLU, **arguments):
    layers = [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, **arguments), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, act=nn.ReLU):
        super().__init__()
        self.body = nn.Sequential(conv(16, 8, act=act), conv(8, 8, 3, act=act), conv(8, 16, act=None))
        self.act = act()
        self.last = conv(16, 4)

    def forward(self, x):
        return self.last(self.act(self.body(x) + x))


class Inverted(nn.Module):
    """As in MobileNets, with squeezing."""

    def __init__(self):
        super().__init__()
        act = nn.Hardswish
        self.wide = nn.Sequential(conv(16, 32, act=act), conv(32, 32, 5, act=act, groups=32))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1))
        self.narrow = conv(32, 16, act=None)

    def forward(self, x):
        y = self.wide(x)
        return self.narrow(y * nn.functional.hardsigmoid(self.squeeze(y))) + x


class Cat(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([conv(16, 8), conv(16, 8, 3, act=None), conv(16, 8, 5)])
        self.last = conv(24, 4)

    def forward(self, x):
        return self.last(torch.cat([branch(x) for branch in self.branches], 1))


class Turned(nn.Module):
    """A model from which torch makes batches of products."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 7))

    def forward(self, x):
        return self.layers(x.transpose(1, 2))


IMAGE = (2, 16, 11, 14)
MODELS = {
    "conv, relu": (lambda: nn.Sequential(conv(16, 16, 3), conv(16, 4)), IMAGE),
    "conv, hardswish": (lambda: nn.Sequential(conv(16, 16, 3, nn.Hardswish), conv(16, 4, 3, stride=2)), IMAGE),
    "depthwise": (lambda: nn.Sequential(conv(16, 16, 3, nn.ReLU6, groups=16, stride=2), conv(16, 4)), IMAGE),
    "groups, dilation": (lambda: nn.Sequential(conv(16, 16, 3, groups=4), conv(16, 4, 3, dilation=2)), IMAGE),
    "residual": (Residual, IMAGE),
    "inverted": (Inverted, IMAGE),
    "max pool": (lambda: nn.Sequential(conv(16, 16, 3), nn.MaxPool2d(3, 2, 1), conv(16, 4)), IMAGE),
    "average pool": (lambda: nn.Sequential(conv(16, 16, 3), nn.AvgPool2d(2), conv(16, 4)), IMAGE),
    "flatten": (
        lambda: nn.Sequential(conv(16, 16, 3), nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.Linear(96, 5)),
        IMAGE,
    ),
    "cat": (Cat, IMAGE),
    "linear": (lambda: nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 7, bias=False)), (5, 24)),
    "linear of rank 3": (lambda: nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 7, bias=False)), (2, 5, 24)),
    "linear of turned inputs": (Turned, (2, 24, 5)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(6, 8, 3), nn.ReLU()), (2, 6, 15)),
}


def built(name, **config):
    make, shape = MODELS[name]
    x = torch.randn(shape)
    return with_grids(pt2e(make(), x, **config)), x


def steps_off(results, expected, scales):
    """By how many steps what is quantized differs where it does."""
    off = [((a - b) / scale).round().abs() for a, b, scale in zip(results[1:], expected[1:], scales, strict=True)]
    return torch.cat([o.flatten() for o in off])


def check(results, expected, scales):
    off = steps_off(results, expected, scales)
    assert off.max() <= 1
    assert off.count_nonzero() <= 0.01 * off.numel() + 1  # an average of four is a tie one time in four
    assert relative_error(results[0].numpy(), expected[0].numpy()) <= 1e-2


@pytest.mark.parametrize("name", MODELS)
def test_block(name, compile_model, regions, in_bytes):
    (model, scales), x = built(name)
    compiled = compile_model(model)
    check(compiled(x), model(x), scales)
    assert in_bytes
    assert all(in_bytes)
    text = explain(compiled, x)
    assert not host_computes(text)
    assert "stays" not in text
    (region,) = regions()
    assert any(region.region.outputs_in_steps)
    assert [shaped.host for shaped in region.shaped.values()] == [None]


@pytest.mark.parametrize("config", [{"reduce_range": True}, {"is_qat": True}], ids=str)
def test_another_config(config, compile_model, regions):
    (model, scales), x = built("residual", **config)
    x = 3 * x  # beyond the range that was seen
    check(compile_model(model)(x), model(x), scales)
    assert len(regions()) == 1


def test_exported_program(regions):
    (model, scales), x = built("residual")
    loaded = load(torch.export.export(model, (x,)), **OPTIONS)
    check(loaded(x), model(x), scales)
    assert len(regions()) == 1


def test_inductor_as_host(compile_model, regions):
    (model, scales), x = built("residual")
    check(compile_model(model, host="inductor")(x), model(x), scales)
    assert len(regions()) == 1


def test_open_sizes(compile_model, regions):
    (model, scales), _ = built("residual", dynamic_shapes=({2: torch.export.Dim.AUTO},))
    compiled = compile_model(model, dynamic=True)
    for rows in (11, 8):
        part = torch.randn(2, 16, rows, 14)
        check(compiled(part), model(part), scales)
    assert len(regions()) == 1


def test_channels_last(compile_model, regions):
    (model, scales), x = built("inverted")
    x = x.contiguous(memory_format=torch.channels_last)
    check(compile_model(model)(x), model(x), scales)
    assert len(regions()) == 1
