"""torch.ops.softneuro.qconv2d and qlinear: what Q and DQ around a float layer mean, in exact arithmetic."""

import math

import pytest
import torch
from torch.nn import functional

from softneuro.torch_backend import ops

X_GRID = (0.03, 117)
OUT = {"out_scale": 0.05, "out_zero_point": 100}
ACTIVATIONS = {"none": lambda y: y, "relu": torch.relu, "hardswish": functional.hardswish, "sigmoid": torch.sigmoid}


@pytest.fixture(autouse=True)
def _loaded():
    ops.load()


def random_bytes(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def random_weight(*shape):
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def conv_operands(scales=6):
    return random_bytes(2, 4, 9, 8), *X_GRID, random_weight(6, 2, 3, 3), torch.rand(scales) * 0.01 + 0.001


def linear_operands(scales=5, shape=(3, 4, 12)):
    return random_bytes(*shape), *X_GRID, random_weight(5, shape[-1]), torch.rand(scales) * 0.01 + 0.001


def reals(x, scale, zero_point, weight, weight_scale):
    """The reals of float32 scales, exactly."""
    factors = weight_scale.double().reshape(-1, *[1] * (weight.dim() - 1))
    return (x.double() - zero_point) * torch.tensor(scale).double(), weight.double() * factors


def conv_reals(operands, bias=None, **arguments):
    x, weight = reals(*operands)
    return functional.conv2d(x, weight, None if bias is None else bias.double(), **arguments)


def linear_reals(operands, bias=None):
    x, weight = reals(*operands)
    return functional.linear(x, weight, None if bias is None else bias.double())


def check_bytes(result, expected, scale=OUT["out_scale"], zero_point=OUT["out_zero_point"]):
    """The step that is nearest, but for what lies within a thousandth of a step from a tie."""
    steps = expected / torch.tensor(scale).double() + zero_point
    assert result.dtype == torch.uint8
    assert result.shape == expected.shape
    away = (steps.clamp(0, 255) - result).abs()
    assert away.max() <= 0.5 + 1e-3
    assert result.float().std() > 0
    assert result.is_contiguous()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scales", [1, 6])
def test_qconv2d(scales, activation):
    operands, bias = conv_operands(scales), torch.randn(6)
    arguments = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "groups": 2}
    expected = ACTIVATIONS[activation](conv_reals(operands, bias, **arguments))
    grid = {"out_scale": 0.02, "out_zero_point": 10} if activation == "relu" else OUT
    grid = {"out_scale": 1 / 255, "out_zero_point": 0} if activation == "sigmoid" else grid
    result = torch.ops.softneuro.qconv2d(*operands, bias, **arguments, **grid, activation=activation)
    check_bytes(result, expected, *grid.values())
    floats = torch.ops.softneuro.qconv2d(*operands, bias, **arguments, activation=activation)
    torch.testing.assert_close(floats, expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scales", [1, 5])
def test_qlinear(scales, activation):
    operands, bias = linear_operands(scales), torch.randn(5)
    expected = ACTIVATIONS[activation](linear_reals(operands, bias))
    grid = {"out_scale": 1 / 255, "out_zero_point": 0} if activation == "sigmoid" else OUT
    check_bytes(torch.ops.softneuro.qlinear(*operands, bias, **grid, activation=activation), expected, *grid.values())
    floats = torch.ops.softneuro.qlinear(*operands, bias, activation=activation)
    torch.testing.assert_close(floats, expected.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(12,), (1, 12), (7, 12), (2, 1, 3, 12)])
def test_ranks_without_bias(shape):
    operands = linear_operands(shape=shape)
    check_bytes(torch.ops.softneuro.qlinear(*operands, **OUT), linear_reals(operands))


def test_depthwise():
    operands = random_bytes(1, 6, 7, 7), *X_GRID, random_weight(6, 1, 3, 3), torch.full((6,), 0.01)
    result = torch.ops.softneuro.qconv2d(*operands, padding=[1, 1], groups=6, **OUT)
    check_bytes(result, conv_reals(operands, padding=1, groups=6))


def test_sums_are_those_of_integers():
    """Beyond what floats, or sixteen bits, add up exactly."""
    x = torch.randint(250, 256, (2, 3001), dtype=torch.uint8)
    weight = torch.randint(100, 128, (4, 3001), dtype=torch.int8) * torch.tensor([[1], [1], [-1], [-1]]).char()
    expected = (x.double() @ weight.t().double()).float()
    operands = (1.0, 0), (torch.ones(1),)
    assert torch.equal(torch.ops.softneuro.qlinear(x, *operands[0], weight, *operands[1]), expected)
    image, kernel = x[..., None, None], weight[..., None, None]
    result = torch.ops.softneuro.qconv2d(image, *operands[0], kernel, *operands[1])
    assert torch.equal(result[..., 0, 0], expected)


@pytest.mark.parametrize("out_scale", [None, 0.05])
def test_opcheck(out_scale):
    conv = (*conv_operands(), torch.randn(6), [2, 1], [1, 0], [1, 2], 2, out_scale, 3, "relu", "")
    torch.library.opcheck(torch.ops.softneuro.qconv2d.default, conv)
    torch.library.opcheck(torch.ops.softneuro.qconv2d.default, (random_bytes(2, 2, 5, 5), *conv[1:5]))
    linear = (*linear_operands(), torch.randn(5), out_scale, 3, "relu", "")
    torch.library.opcheck(torch.ops.softneuro.qlinear.default, linear)
    torch.library.opcheck(torch.ops.softneuro.qlinear.default, linear[:5])


@pytest.mark.parametrize("out_scale", [None, 0.05])
def test_no_gradients(out_scale):
    arguments = (*linear_operands(), torch.randn(5, requires_grad=True), out_scale)
    assert not torch.ops.softneuro.qlinear(*arguments).requires_grad
    torch.library.opcheck(torch.ops.softneuro.qlinear.default, arguments)


def test_compiled():
    operands = conv_operands()

    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def call(x):
        return torch.ops.softneuro.qconv2d(x, *operands[1:], groups=2, **OUT)

    for rows in (9, 5):
        part = (operands[0][:, :, :rows], *operands[1:])
        check_bytes(call(part[0]), conv_reals(part, groups=2))


@pytest.mark.parametrize("which", ["bytes", "scales", "bias"])
def test_new_weights_are_used(which):
    operands, bias = linear_operands(), torch.randn(5)
    for _ in range(3):
        check_bytes(torch.ops.softneuro.qlinear(*operands, bias, **OUT), linear_reals(operands, bias))
        with torch.no_grad():
            if which == "bytes":
                operands[3][2] = -operands[3][2]
            elif which == "scales":
                operands[4].data[1] *= 1.5
            else:
                bias[3] -= 1


def test_other_parameters_are_used():
    operands = linear_operands()
    for scale, zero_point in (X_GRID, (0.04, 117), (0.04, 0), (0.04, 255)):
        changed = (operands[0], scale, zero_point, *operands[3:])
        torch.testing.assert_close(
            torch.ops.softneuro.qlinear(*changed), linear_reals(changed).float(), rtol=1e-5, atol=1e-5
        )
        for out in ((0.05, 100), (0.05, 128), (0.1, 128)):
            check_bytes(torch.ops.softneuro.qlinear(*changed, None, *out), linear_reals(changed), *out)


def test_strided_operands():
    x = random_bytes(2, 4, 9, 8).to(memory_format=torch.channels_last)
    operands = x, *X_GRID, random_weight(4, 6, 3, 3).transpose(0, 1), torch.rand(12)[::2] * 0.01 + 0.001
    check_bytes(torch.ops.softneuro.qconv2d(*operands, **OUT), conv_reals(operands))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.randn(1, 4, 6, 6)}, "the input must be uint8"),
        ({"x": torch.ones(1, 4, 6, 6, dtype=torch.int8)}, "the input must be uint8"),
        ({"weight": torch.randn(5, 4, 3, 3)}, "the weight must be int8"),
        ({"weight": torch.ones(5, 4, 3, 3, dtype=torch.uint8)}, "the weight must be int8"),
        ({"weight_scale": torch.ones(5).double()}, "scale must be float32"),
        ({"bias": torch.ones(5).half()}, "the bias must be float32"),
        ({"bias": torch.ones(4)}, "bias"),
        ({"x_scale": math.nan}, "the scale of x is nan"),
        ({"x_scale": math.inf}, "the scale of x is inf"),
        ({"x_scale": 0.0}, "the scale of x is 0"),
        ({"x_scale": 1e-60}, "the scale of x is 1e-60"),
        ({"x_scale": -0.5}, "the scale of x is -0.5"),
        ({"x_zero_point": 256}, "the zero point of x is 256; it has to be within 0..255"),
        ({"x_zero_point": -1}, "the zero point of x is -1"),
        ({"out_scale": math.nan}, "the scale of the output is nan"),
        ({"out_scale": 0.0}, "the scale of the output is 0"),
        ({"out_scale": 0.5, "out_zero_point": 1 << 40}, "the zero point of the output"),
        ({"weight_scale": torch.ones(4)}, "5 rows and 4 scales"),
        ({"weight_scale": torch.ones(5, 1)}, "5 rows and 5 scales"),
        ({"weight_scale": torch.tensor([1, 1, math.nan, 1, 1])}, "scale is nan"),
        ({"weight_scale": torch.tensor([1, 1, 0.0, 1, 1])}, "scale is 0"),
        ({"x": torch.ones(0, 4, 6, 6, dtype=torch.uint8)}, "an operand is empty"),
        ({"weight": torch.ones(0, 4, 3, 3, dtype=torch.int8)}, "an operand is empty"),
        ({"x": torch.ones(1, 3, 6, 6, dtype=torch.uint8)}, "channels"),
        ({"x": torch.ones(1, 4, 6, dtype=torch.uint8)}, r"\\[1,4,6\\]|1x4x6"),
        ({"x": torch.ones(1, 4, 2, 2, dtype=torch.uint8)}, "larger than the padded input"),
        ({"stride": [0, 1]}, "stride"),
        ({"groups": 3}, "groups"),
        ({"activation": "rellu"}, "relu"),
        ({"activation": "clamp"}, "parameters"),
        ({"routine": "fast"}, "unknown routine 'fast'"),
    ],
)
def test_bad_calls(changes, message):
    operands = {"x": random_bytes(1, 4, 6, 6), "x_scale": 0.1, "x_zero_point": 3}
    weight = {"weight": random_weight(5, 4, 3, 3), "weight_scale": torch.ones(5)}
    with pytest.raises(RuntimeError, match=message):
        torch.ops.softneuro.qconv2d(**{**operands, **weight, **changes})
