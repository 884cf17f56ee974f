"""Whether tensors are what they were, by what torch keeps of them or by asking torch."""

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

import softneuro
from softneuro.torch_backend import ops
from softneuro.torch_backend.freshness import weights
from softneuro.torch_backend.freshness.weights import addresses_of, memory_of, stamps_of, versions_of


@pytest.fixture(autouse=True, params=["as built", "another torch"])
def read(request, monkeypatch):
    """Whether torch's objects are read."""
    ops.load()
    if request.param == "another torch":
        monkeypatch.setattr(torch, "__version__", "2.999.0")
    weights._tensor_fields.cache_clear()
    yield request.param == "as built"
    weights._tensor_fields.cache_clear()


def replace(tensor, data):
    tensor.data = data


def swap(tensor):
    torch.utils.swap_tensors(tensor, nn.Parameter(torch.zeros(2, 3)))


KIND = {
    "strides": lambda t: replace(t, torch.zeros(3, 2).t()),
    "sizes": lambda t: replace(t, torch.zeros(6)),
    "number of dimensions": lambda t: replace(t, torch.zeros(1, 2, 3)),
    "dtype": lambda t: replace(t, torch.zeros(2, 3, dtype=torch.float64)),
    "memory": lambda t: replace(t, torch.zeros(2, 3)),
    "offset": lambda t: replace(t, t.data.new_zeros(12)[6:].view(2, 3)),
    "gradients": lambda t: t.requires_grad_(not t.requires_grad),
    "another of torch's objects": swap,
    "class": lambda t: setattr(t, "__class__", type("Mine", (nn.Parameter,), {})),
    "transposed": lambda t: t.t_(),
}
CONTENT = {
    "written": lambda t: t.add_(1),
    "one element": lambda t: t[1, 1].zero_(),
    "memory of the storage": lambda t: t.untyped_storage().resize_(4096),
}


@pytest.mark.parametrize("change", [*KIND, *CONTENT])
def test_changes_are_told(change, read) -> None:
    tensors = [torch.randn(3), nn.Parameter(torch.randn(2, 3)), torch.randn(0)]
    stamps, memory = stamps_of(tensors), memory_of(tensors)
    assert not stamps.unchanged()
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    for _ in range(2):
        assert stamps.unchanged()
        if read:
            assert memory.same_kind()
            assert memory.untouched()
    with torch.no_grad():
        (KIND | CONTENT)[change](tensors[1])
    if read:
        assert memory.same_kind() == (change in CONTENT)
        assert not memory.untouched()
        assert not stamps.unchanged()
    else:
        assert memory is None
        # Torch does not say, and compiled code's guards do, where the memory and the version are the same.
        told = change in CONTENT or change not in ("gradients", "class")
        assert stamps.unchanged() != told


def test_stamps_that_never_came_true() -> None:
    tensors = [torch.randn(3)]
    stamps = stamps_of(tensors)
    stamps.expect([versions_of(tensors)[0] + 1], addresses_of(tensors))
    assert not stamps.unchanged()
    stamps.expect(versions_of(tensors), [addresses_of(tensors)[0] + 64])
    assert not stamps.unchanged()
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    assert stamps.unchanged()
    with pytest.raises(ValueError, match="for each tensor"):
        stamps.expect([1, 2], [2])


def test_stamps_that_are_cleared() -> None:
    tensors = [torch.randn(3), torch.randn(2)]
    stamps = stamps_of(tensors)
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    stamps.clear()
    assert not stamps.unchanged()
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    assert not stamps.unchanged()


def test_stamps_of_tensors_that_were_swapped() -> None:
    tensors = [torch.randn(2, 3), torch.randn(2, 3)]
    stamps = stamps_of(tensors)
    swap(tensors[0])
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    assert stamps.unchanged()
    tensors[0].data.add_(1)
    tensors[1].add_(1)
    assert not stamps.unchanged()


def test_inference_tensors_have_no_version() -> None:
    with torch.inference_mode():
        tensors = [torch.randn(5)]
    stamps = stamps_of(tensors)
    stamps.expect(versions_of(tensors), addresses_of(tensors))
    assert stamps.unchanged()


def test_stamps_of_nothing() -> None:
    stamps = stamps_of([])
    assert not stamps.unchanged()
    stamps.expect([], [])
    assert stamps.unchanged()


def test_stamps_ask_a_descriptor() -> None:
    with pytest.raises(TypeError, match="descriptor"):
        softneuro._C.TensorStamps([], 1, id)


class Mine(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "tensor", [torch.zeros(1, 1, 1, 1, 1, 2), torch.zeros(2).as_subclass(Mine), torch.eye(2).to_sparse()]
)
def test_what_is_not_read(tensor) -> None:
    assert memory_of([torch.zeros(1), tensor]) is None
    if tensor.layout == torch.strided:
        stamps = stamps_of([tensor])
        stamps.expect(versions_of([tensor]), addresses_of([tensor]))
        assert stamps.unchanged()
        tensor.add_(1)
        assert not stamps.unchanged()


@pytest.mark.parametrize(
    "mode", [torch.inference_mode, torch.enable_grad, FakeTensorMode, lambda: torch.device("meta")]
)
def test_the_first_look_is_good_for_all(mode, read) -> None:
    tensors = [torch.zeros(2)]
    with mode():
        memory_of(tensors)
    assert (memory_of(tensors) is not None) == read


def test_nothing_is_tried_in_a_transform(read) -> None:
    tensors = [torch.zeros(2)]
    torch.func.jvp(lambda x: (memory_of(tensors), x)[1], (torch.ones(1),), (torch.ones(1),))
    assert (memory_of(tensors) is not None) == read


def test_another_layout_of_torch(read, monkeypatch) -> None:
    """Where a change does not show, nothing is read."""
    tells = weights._tells_changes
    shifted = []
    monkeypatch.setattr(weights, "_tells_changes", lambda fields: shifted.append(fields) or tells(fields))
    assert (memory_of([torch.zeros(2)]) is not None) == read
    if not read:
        assert not shifted
        return
    size, count, storage, counter, autograd, flag, function = shifted[0]
    with torch.no_grad():
        assert tells((size, count, storage, counter, autograd, flag, function))
        assert not tells((size, count, storage, storage, autograd, flag, function))  # versions are not there
        assert not tells((storage, count, storage, counter, autograd, flag, function))  # without sizes


def test_tensors_that_torch_does_not_have(read) -> None:
    if read:
        fields = weights._tensor_fields()
        with pytest.raises(ValueError, match="not of this torch"):
            softneuro._C.TensorMemory([torch.zeros(1)], [torch.zeros(1)._cdata], fields)
        with pytest.raises(ValueError, match="each tensor"):
            softneuro._C.TensorMemory([torch.zeros(1)], [], fields)
