"""Whether tensors are what they were, by what torch keeps of them."""

import gc

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

from softneuro.torch_backend import _native, ops
from softneuro.torch_backend.freshness import tensors as watched
from softneuro.torch_backend.freshness.tensors import kinds_of, lives_of, now


@pytest.fixture(autouse=True, params=["as built", "another torch"])
def read(request, monkeypatch):
    """Whether torch's objects are read."""
    ops.load()
    if request.param == "another torch":
        monkeypatch.setattr(torch, "__version__", "2.999.0")
    watched.fields.cache_clear()
    yield request.param == "as built"
    watched.fields.cache_clear()


def look(tensors):
    return now(lives_of(tensors, lambda: None), tensors)


def replace(tensor, data):
    tensor.data = data


def swap(tensor):
    """What torch.utils.swap_tensors does, which refuses tensors that are watched."""
    torch._C._swap_tensor_impl(tensor, nn.Parameter(torch.zeros(2, 3)))


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
    lives = lives_of(tensors, lambda: None)
    content, kinds = now(lives, tensors), kinds_of(tensors)
    for _ in range(2):
        assert content.unchanged() == kinds.same_kind() == read
    with torch.no_grad():
        (KIND | CONTENT)[change](tensors[1])
    assert not content.unchanged()
    assert kinds.same_kind() == (read and change in CONTENT)
    assert content.are(tensors)
    # Tensors of another class would have to be asked for what they are.
    assert now(lives, tensors).unchanged() == (read and change != "class")
    assert not content.unchanged()


def test_the_same_objects() -> None:
    tensors = [torch.randn(3), torch.randn(2)]
    lives = lives_of(tensors, lambda: None)
    assert lives.are(tensors)
    assert lives.are(tuple(tensors))
    assert not lives.are(tensors[:1])
    assert not lives.are([*tensors, tensors[0]])
    assert not lives.are(tensors[::-1])
    assert not lives.unchanged()  # nothing was looked at
    with pytest.raises(TypeError):
        lives.are(1)


def test_a_death_is_noticed_and_told_once(read) -> None:
    told = []
    tensors = [torch.randn(3), torch.randn(2), torch.randn(1)]
    lives = lives_of(tensors, lambda: told.append(1))
    watch, kept = now(lives, tensors), tensors[0]
    assert watch.unchanged() == read
    tensors.clear()
    gc.collect()
    assert told == [1]
    for one in (lives, watch):
        assert not one.are([kept])
        assert not one.unchanged()
        assert not one.same_kind()
    assert not now(lives, [kept]).unchanged()


def test_nothing_is_told_of_what_was_let_go() -> None:
    told = []
    tensors = [torch.randn(3), torch.randn(2)]
    lives = lives_of(tensors, lambda: told.append(1))
    watch = now(lives, tensors)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(tensors[0], torch.randn(4))
    watch.let_go()
    assert not lives.are(tensors)
    assert not watch.unchanged()
    torch.utils.swap_tensors(tensors[0], torch.randn(4))
    del tensors
    assert not told


def test_a_watch_may_go_while_it_tells() -> None:
    kept = [torch.randn(3), torch.randn(2)]
    owners = []
    owners.append(lives_of(kept, owners.clear))
    kept.clear()
    assert not owners


def test_inference_tensors_have_no_version(read) -> None:
    with torch.inference_mode():
        tensors = [torch.randn(5)]
    assert watched.versions_of([torch.zeros(1), *tensors]) == [0, 0]
    assert look(tensors).unchanged() == read


def test_nothing_is_unchanged(read) -> None:
    assert look([]).unchanged() == read
    assert kinds_of([]).same_kind() == read


def test_torch_is_asked_about_kinds_too(read) -> None:
    tensors, answer = [torch.zeros(3), torch.zeros(2)], [True]
    watch = kinds_of(tensors)
    watch.ask_also(lambda one: one is tensors[0] and answer[0], tensors[:1])
    assert watch.same_kind() == read
    answer[0] = False
    assert not watch.same_kind()
    watch = kinds_of(tensors)
    watch.ask_also(lambda: 1 / 0, [])
    assert not watch.same_kind()


class Mine(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "tensor", [torch.zeros(1, 1, 1, 1, 1, 2), torch.zeros(2).as_subclass(Mine), torch.eye(2).to_sparse()]
)
def test_what_is_not_read_counts_as_changed(tensor) -> None:
    tensors = [torch.zeros(1), tensor]
    assert not look(tensors).unchanged()
    assert not kinds_of(tensors).same_kind()
    assert look(tensors).are(tensors)


@pytest.mark.parametrize(
    "mode", [torch.inference_mode, torch.enable_grad, FakeTensorMode, lambda: torch.device("meta")]
)
def test_the_first_look_is_good_for_all(mode, read) -> None:
    tensors = [torch.zeros(2)]
    with mode():
        look(tensors)
    assert look(tensors).unchanged() == read


def test_nothing_is_read_in_a_transform(read) -> None:
    tensors, found = [torch.zeros(2)], []
    torch.func.jvp(lambda x: (found.append(look(tensors).unchanged()), x)[1], (torch.ones(1),), (torch.ones(1),))
    assert found == [False]
    assert look(tensors).unchanged() == read


def test_another_layout_of_torch(read, monkeypatch) -> None:
    """Where a change does not show, nothing is read."""
    tells = watched._tells_changes
    shifted = []
    monkeypatch.setattr(watched, "_tells_changes", lambda fields: shifted.append(fields) or tells(fields))
    assert look([torch.zeros(2)]).unchanged() == read
    if not read:
        assert not shifted
        return
    place, size, count, storage, counter, autograd, flag, function = shifted[0]
    with torch.no_grad():
        assert tells((place, size, count, storage, counter, autograd, flag, function))
        assert not tells((place, size, count, storage, storage, autograd, flag, function))  # versions are not there
        assert not tells((place, storage, count, storage, counter, autograd, flag, function))  # without sizes


def test_tensors_that_torch_does_not_have(monkeypatch) -> None:
    with pytest.raises(ValueError, match="not of this torch"):
        _native.tensor_place(torch.zeros(1), 1)
    monkeypatch.setattr(watched, "_tells_changes", lambda _: False)
    assert watched.fields() is None
