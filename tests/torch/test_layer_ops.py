"""torch.ops.softneuro.conv2d and linear in eager code."""

import pytest
import torch
from torch.nn import functional

from softneuro.torch_backend import ops


@pytest.fixture(autouse=True)
def _loaded():
    ops.load()


def conv_arguments(requires_grad=False):
    return (
        torch.randn(2, 4, 9, 8, requires_grad=requires_grad),
        torch.randn(6, 2, 3, 3, requires_grad=requires_grad),
        torch.randn(6, requires_grad=requires_grad),
        [2, 1],
        [1, 0],
        [1, 2],
        2,
        "silu",
        "",
    )


def test_conv2d_matches():
    x, weight, bias, *rest = conv_arguments()
    result = torch.ops.softneuro.conv2d(x, weight, bias, *rest)
    expected = functional.silu(functional.conv2d(x, weight, bias, *rest[:4]))
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)
    assert result.is_contiguous()
    plain = torch.ops.softneuro.conv2d(x, torch.randn(3, 4, 1, 1))
    assert plain.shape == (2, 3, 9, 8)


def test_linear_matches():
    x, weight, bias = torch.randn(5, 3, 7), torch.randn(4, 7), torch.randn(4)
    result = torch.ops.softneuro.linear(x, weight, bias, "relu")
    torch.testing.assert_close(result, functional.linear(x, weight, bias).relu(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(torch.ops.softneuro.linear(x, weight), functional.linear(x, weight))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck(requires_grad):
    torch.library.opcheck(torch.ops.softneuro.conv2d.default, conv_arguments(requires_grad))
    linear = [torch.randn(3, 5), torch.randn(4, 5), torch.randn(4)]
    linear = [t.requires_grad_(requires_grad) for t in linear]
    torch.library.opcheck(torch.ops.softneuro.linear.default, (*linear, "relu", ""))


def test_gradients():
    ours = conv_arguments(True)
    theirs = [t.detach().clone().requires_grad_() if isinstance(t, torch.Tensor) else t for t in ours]
    torch.ops.softneuro.conv2d(*ours).sin().sum().backward()
    functional.silu(functional.conv2d(*theirs[:7])).sin().sum().backward()
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("op", "shape", "arguments"),
    [
        ("conv2d", (6, 4, 3, 3), ()),
        ("conv2d", (6, 4, 3, 3), (None, [2, 2])),
        ("linear", (6, 8), ()),
        ("linear", (6, 8), (None, "relu")),
    ],
)
def test_gradients_without_bias(op, shape, arguments):
    """Torch leaves out trailing arguments that have their default."""
    ours = [torch.randn(2, 4, 9, 8, requires_grad=True), torch.randn(shape, requires_grad=True)]
    theirs = [t.detach().clone().requires_grad_() for t in ours]
    ours_op = getattr(torch.ops.softneuro, op)
    torch.library.opcheck(ours_op.default, (*ours, *arguments))
    ours_op(*ours, *arguments).sin().sum().backward()
    if op == "conv2d":
        expected = functional.conv2d(*theirs, *arguments)
    else:
        expected = functional.linear(*theirs)
        expected = expected.relu() if arguments else expected
    expected.sin().sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


def test_new_weights_are_used():
    x, weight = torch.randn(1, 4, 6, 6), torch.randn(5, 4, 3, 3)
    for _ in range(3):
        torch.testing.assert_close(
            torch.ops.softneuro.conv2d(x, weight), functional.conv2d(x, weight), atol=1e-4, rtol=1e-4
        )
        weight[4, 3, 2, 1] += 10


def test_strided_operands():
    x = torch.randn(2, 4, 8, 9).to(memory_format=torch.channels_last)
    weight = torch.randn(4, 5, 3, 3).transpose(0, 1)
    torch.testing.assert_close(
        torch.ops.softneuro.conv2d(x, weight), functional.conv2d(x, weight), atol=1e-4, rtol=1e-4
    )


def test_routine_by_name():
    x, weight = torch.randn(1, 16, 8, 8), torch.randn(16, 16, 3, 3)
    expected = functional.conv2d(x, weight)
    result = torch.ops.softneuro.conv2d(x, weight, routine="conv2d/cpu:float32:nchw/naive")
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(RuntimeError, match="unknown routine 'fast'"):
        torch.ops.softneuro.conv2d(x, weight, routine="fast")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.randn(1, 4, 6)}, ""),
        ({"x": torch.randn(1, 4, 6, 6).double()}, "float32"),
        ({"x": torch.randn(1, 3, 6, 6)}, ""),
        ({"x": torch.randn(1, 4, 2, 2)}, ""),
        ({"stride": [0, 1]}, ""),
        ({"groups": 3}, ""),
        ({"activation": "rellu"}, "relu"),
        ({"activation": "clamp"}, "parameters"),
        ({"padding": [-5, 0]}, ""),
    ],
)
def test_bad_calls(changes, message):
    arguments = {"x": torch.randn(1, 4, 6, 6), "weight": torch.randn(5, 4, 3, 3), **changes}
    with pytest.raises(RuntimeError, match=message):
        torch.ops.softneuro.conv2d(**arguments)
