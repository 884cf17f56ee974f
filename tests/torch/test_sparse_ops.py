"""torch.ops.softneuro.sparse_conv2d in eager code."""

import pytest
import torch
from torch.nn import functional

import softneuro
from softneuro import _C
from softneuro.torch_backend import ops

SPARSE = [
    entry["descriptor"]
    for entry in softneuro.registry()
    if entry["layer"] == "conv2d" and entry["exploits_sparsity"] and entry["available"]
]


@pytest.fixture(autouse=True)
def _loaded():
    ops.load()


def sparse(*shape, share=0.9):
    weight = torch.randn(shape)
    return weight * (torch.rand(shape) > share)


@pytest.fixture
def arguments():
    """A layer that all sparse routines of unstructured zeros take."""
    return torch.randn(2, 16, 14, 13), sparse(32, 16, 3, 3), torch.randn(32), [1, 1], [1, 1], [1, 1], 1, "relu"


class TestSparse:
    def test_result(self, arguments):
        x, weight, bias, *rest, activation = arguments
        expected = functional.conv2d(x, weight, bias, *rest)
        found = torch.ops.softneuro.sparse_conv2d(*arguments)
        torch.testing.assert_close(found, expected.relu(), atol=1e-4, rtol=1e-4)
        assert activation == "relu"
        for stride, groups in (2, 1), (1, 2):
            weight = sparse(32, 16 // groups, 3, 3)
            found = torch.ops.softneuro.sparse_conv2d(x, weight, None, [stride] * 2, [1, 1], groups=groups)
            expected = functional.conv2d(x, weight, None, stride, 1, groups=groups)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)

    def test_zeros_that_change(self, arguments):
        x, weight, *rest = arguments
        torch.ops.softneuro.sparse_conv2d(x, weight, *rest)
        weight[:16] = weight[16:].flip(0)
        expected = functional.conv2d(x, weight, *rest[:5]).relu()
        torch.testing.assert_close(torch.ops.softneuro.sparse_conv2d(x, weight, *rest), expected, atol=1e-4, rtol=1e-4)
        weight += 1
        with pytest.raises(RuntimeError, match="no sparse routine accepts the layer"):
            torch.ops.softneuro.sparse_conv2d(x, weight, *rest)
        expected = functional.conv2d(x, weight, *rest[:5]).relu()
        torch.testing.assert_close(torch.ops.softneuro.conv2d(x, weight, *rest), expected, atol=1e-3, rtol=1e-4)

    def test_a_routine_by_name(self, arguments):
        expected = torch.ops.softneuro.conv2d(*arguments)
        x, weight, *_ = arguments
        attrs, weights = {"padding": [1, 1, 1, 1]}, {"weight": weight.numpy()}
        accepted = _C.testing.accepting("conv2d", attrs, weights, [x.shape], {"activation": "relu"}, 1)
        taking = {descriptor.split("{")[0] for descriptor in accepted} & set(SPARSE)
        assert taking
        for descriptor in SPARSE:
            if descriptor in taking:
                found = torch.ops.softneuro.sparse_conv2d(*arguments, descriptor)
                torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
            else:
                with pytest.raises(RuntimeError, match="declines"):
                    torch.ops.softneuro.sparse_conv2d(*arguments, descriptor)

    @pytest.mark.parametrize("requires_grad", [False, True])
    def test_opcheck(self, arguments, requires_grad):
        tensors = [tensor.requires_grad_(requires_grad) for tensor in arguments[:3]]
        torch.library.opcheck(torch.ops.softneuro.sparse_conv2d.default, (*tensors, *arguments[3:], ""))


def test_refusals():
    x, weight = torch.randn(1, 16, 8, 8), torch.randn(16, 16, 3, 3)
    with pytest.raises(RuntimeError, match="no sparse routine accepts the layer"):
        torch.ops.softneuro.sparse_conv2d(x, weight)
    with pytest.raises(RuntimeError, match=r"no sparse routine accepts|makes no use of zeros"):
        torch.ops.softneuro.sparse_conv2d(x, sparse(16, 16, 3, 3), routine="conv2d/cpu:float32:nchw/naive")
    with pytest.raises(RuntimeError, match="float32"):
        torch.ops.softneuro.sparse_conv2d(x.double(), weight)


def pair_arguments(requires_grad=False):
    tensors = torch.randn(2, 8, 14, 13), sparse(32, 8, 3, 3), torch.randn(32), sparse(16, 32, 3, 3), torch.randn(16)
    tensors = [tensor.requires_grad_(requires_grad) for tensor in tensors]
    first, second = ([1, 1], [1, 1], [1, 1], 1, "relu"), ([1, 1], [1, 1], [1, 1], 1, "relu")
    return [*tensors, *first, *second]


def pair_of(x, first, first_bias, second, second_bias, *stages):
    between = functional.conv2d(x, first, first_bias, *stages[:4]).relu()
    return functional.conv2d(between, second, second_bias, *stages[5:9]).relu()


class TestPairs:
    def test_result(self):
        arguments = pair_arguments()
        expected = pair_of(*arguments)
        found = torch.ops.softneuro.fused_sparse_conv2d(*arguments)
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        arguments[2] = arguments[4] = None
        found = torch.ops.softneuro.fused_sparse_conv2d(*arguments)
        torch.testing.assert_close(found, pair_of(*arguments), atol=1e-4, rtol=1e-4)

    def test_weights_that_change(self):
        arguments = pair_arguments()
        torch.ops.softneuro.fused_sparse_conv2d(*arguments)
        arguments[3][3:5] *= 2
        found = torch.ops.softneuro.fused_sparse_conv2d(*arguments)
        torch.testing.assert_close(found, pair_of(*arguments), atol=1e-4, rtol=1e-4)

    @pytest.mark.parametrize("requires_grad", [False, True])
    def test_opcheck(self, requires_grad):
        torch.library.opcheck(torch.ops.softneuro.fused_sparse_conv2d.default, (*pair_arguments(requires_grad), ""))
        few = pair_arguments(requires_grad)[:4]
        torch.library.opcheck(torch.ops.softneuro.fused_sparse_conv2d.default, tuple(few))

    def test_refusals(self):
        arguments = pair_arguments()
        for place in 1, 3:
            arguments[place] = torch.randn_like(arguments[place])
        with pytest.raises(RuntimeError, match="no sparse routine accepts the layer: neither weight is sparse"):
            torch.ops.softneuro.fused_sparse_conv2d(*arguments)
        arguments = pair_arguments()
        with pytest.raises(RuntimeError, match=r"channels|weight"):
            torch.ops.softneuro.fused_sparse_conv2d(*arguments[:3], sparse(16, 31, 3, 3))
