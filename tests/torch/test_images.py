"""Images as programs have them: bytes, which a region scales and convolves."""

import pytest
import torch
from torch import nn

from softneuro.torch_backend import load
from softneuro.torch_backend.call.runtime import RegionRuntime
from tests.torch.conftest import OPTIONS
from tests.torch.test_channels_last import LAST, copies

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def by_buffers(model, x):
    return (x.float() / 255 - model.mean) / model.deviation


def without_conversion(model, x):
    return (x / 255 - model.mean) / model.deviation


def in_place(model, x):
    """As torchvision's transforms do it."""
    mean, deviation = (torch.as_tensor(values, dtype=torch.float32).view(-1, 1, 1) for values in (MEAN, DEVIATION))
    return x.to(torch.float32).div_(255).clone().sub_(mean).div_(deviation)


def turned_first(model, x):
    return by_buffers(model, x.permute(0, 3, 1, 2))


def turned_last(model, x):
    return ((x.float() / 255 - model.mean.view(3)) / model.deviation.view(3)).permute(0, 3, 1, 2)


class Net(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1))
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(1, 3, 1, 1))
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(self.scale(self, x)))


def image(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


@pytest.mark.parametrize("scale", [by_buffers, without_conversion, in_place])
def test_bytes_enter_a_region(scale, compile_model, agree, entries):
    """In either order of memory, of which each has a net of its own; nothing is copied on the way."""
    model = Net(scale).eval()
    compiled = compile_model(model)
    x = image(2, 3, 13, 11)
    for _ in range(3):  # prepared, found, found without torch's dispatcher
        agree(compiled, model, x)
        agree(compiled, model, x.to(**LAST))
    assert entries() == 2
    assert not copies(lambda: compiled(x))
    agree(compiled, model, image(2, 3, 26, 11)[:, :, ::2])


@pytest.mark.parametrize("scale", [turned_first, turned_last])
def test_bytes_with_channels_last(scale, compile_model, agree):
    model, x = Net(scale).eval(), image(2, 13, 11, 3)
    compiled = compile_model(model)
    agree(compiled, model, x)
    assert not copies(lambda: compiled(x))


@pytest.mark.parametrize("scale", [by_buffers, in_place, turned_first, turned_last])
def test_they_are_scaled_between_border_and_convolution(scale, compile_model, monkeypatch):
    """With nothing else there, so that one routine may do it all."""
    graphs = []
    lower = RegionRuntime.lower

    def watched(*arguments):
        lowered = lower(*arguments)
        graphs.append(lowered.graph)
        return lowered

    monkeypatch.setattr(RegionRuntime, "lower", watched)
    x = image(1, 13, 11, 3) if "turned" in scale.__name__ else image(1, 3, 13, 11)
    with torch.no_grad():
        compile_model(Net(scale))(x)
    (graph,) = graphs
    types = [layer["type"] for layer in graph.layers()]
    assert types == ["transpose"] * (scale is turned_last) + ["cast", "binary", "binary", "binary", "conv2d"]
    assert graph.input_schemas == [f"cpu:uint8:{'nhwc' if scale is turned_first else 'nchw'}"]


def test_halves_of_bytes(compile_model, agree):
    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1).bfloat16()

        def forward(self, x):
            return self.conv(x.to(torch.bfloat16) / 255)

    model = Halves().eval()
    agree(compile_model(model), model, image(1, 3, 9, 9), tolerance=2e-2)


def test_what_stays_with_bytes_is_the_hosts(compile_model, agree):
    """Arithmetic of bytes wraps around; only what it is converted to is a region's."""
    conv = nn.Conv2d(3, 8, 3).eval()

    def function(x):
        return torch.relu(conv((x + x).float())), x * 3

    agree(compile_model(function), function, image(1, 3, 9, 9))


def test_an_image_of_another_rank(compile_model):
    """What the host makes of it: an image alone is one, five axes are an error that names both."""
    model = Net(by_buffers).eval()
    compiled = compile_model(model, dynamic=False)
    x = image(3, 9, 9)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x), atol=1e-5, rtol=1e-5)
        with pytest.raises(Exception, match=r"[Cc]onv2d|3D|4D"):
            compiled(image(1, 1, 3, 9, 9))


def test_exported(entries):
    model, x = Net(by_buffers).eval(), image(1, 3, 13, 11)
    with torch.no_grad():
        program = load(torch.export.export(model, (x,)), **OPTIONS)
        for _ in range(3):
            torch.testing.assert_close(program(x), model(x), atol=1e-5, rtol=1e-5)
    assert entries() == 1
