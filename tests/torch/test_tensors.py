"""Whether tensors are what they were, by what torch keeps of them."""

import gc
import threading
import time

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

import softneuro
from softneuro.torch_backend import _native, ops
from softneuro.torch_backend.freshness import tensors as watched
from softneuro.torch_backend.freshness.tensors import counters_of, fields_for, kinds_of
from softneuro.torch_backend.freshness.weights import Weights


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
    return _native.TensorWatch(tensors, fields_for(tensors))


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
    content, kinds = look(tensors), kinds_of(tensors)
    for _ in range(2):
        assert content.unchanged() == kinds.same_kind() == read
    with torch.no_grad():
        (KIND | CONTENT)[change](tensors[1])
    assert not content.unchanged()
    assert kinds.same_kind() == (read and change in CONTENT)
    # Of another class they would have to be asked for what they are.
    assert look(tensors).unchanged() == (read and change != "class")
    assert not content.unchanged()


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("change", ["nothing", *KIND, *CONTENT])
def test_epochs_of_sets(change, reads) -> None:
    """The same with and without the short cut past torch's counters."""
    tensors = [torch.randn(3), nn.Parameter(torch.randn(2, 3)), torch.randn(0)]
    sets = Weights(None, reads=reads)
    known, (identity, epoch) = sets.look(tensors)
    assert known.epoch_of() == (identity, epoch)
    with torch.no_grad():
        ({"nothing": lambda _: None} | KIND | CONTENT)[change](tensors[1])
    for _ in range(2):
        if change in {"nothing", "gradients", "class"}:
            assert known.epoch_of() == (identity, epoch)
            assert sets.look(tensors) == (known, (identity, epoch))
        elif change in {"written", "one element", "transposed"}:
            assert known.epoch_of() == (identity, epoch + 1)
            assert sets.look(tensors) == (known, (identity, epoch + 1))
        else:
            assert known.epoch_of() is None
            assert sets.look(tensors)[1][0] > identity


def set_of(tensors):
    return _native.TensorSet(tensors, fields_for, counters_of, None)


def test_the_same_objects() -> None:
    tensors = [torch.randn(3), torch.randn(2)]
    known = set_of(tensors)
    assert known.are(tensors)
    assert known.are(tuple(tensors))
    assert not known.are(tensors[:1])
    assert not known.are([*tensors, tensors[0]])
    assert not known.are(tensors[::-1])
    with pytest.raises(TypeError):
        known.are(1)


def test_a_death_ends_the_set() -> None:
    tensors = [torch.randn(3), torch.randn(2), torch.randn(1)]
    known, kept = set_of(tensors), tensors[0]
    assert known.epoch_of() is not None
    tensors.clear()
    gc.collect()
    assert known.ended
    assert known.epoch_of() is None
    assert not known.are([kept])


def test_the_dead_are_forgotten() -> None:
    region = softneuro._C.Region("name", "content", "host", {})
    sets, tensors = Weights(region, reads=True), [torch.randn(3), torch.randn(2)]
    known, _ = sets.look(tensors)
    assert sets.addresses() == tuple(t.data_ptr() for t in tensors)
    assert sets.sets() == [known]
    assert sets.sets({1}) == []
    del tensors[0]
    gc.collect()
    assert sets.sets() == []
    assert sets.addresses() == ()


def test_other_tensors_in_the_same_memory() -> None:
    """They have version counters of their own."""
    sets, tensor = Weights(None, reads=True), torch.randn(3)
    known, now = sets.look([tensor])
    other = tensor.detach()[:]
    assert sets.look([other])[1][0] > now[0]
    assert known.ended


def test_modules_that_share_their_first_weight() -> None:
    sets = Weights(None, reads=True)
    shared, first, second = torch.randn(3), torch.randn(2), torch.randn(2)
    known = [sets.look([shared, one]) for one in (first, second)]
    for _ in range(2):
        assert [sets.look([shared, one]) for one in (first, second)] == known


def test_what_was_let_go() -> None:
    tensors = [torch.randn(3), torch.randn(2)]
    known = set_of(tensors)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(tensors[0], torch.randn(4))
    known.end()
    assert not known.are(tensors)
    assert known.epoch_of() is None
    torch.utils.swap_tensors(tensors[0], torch.randn(4))


def test_changes_during_a_look() -> None:
    """What is written while Python asks torch counts at the next look at the latest."""
    tensor, during = torch.zeros(2), []

    def counters(tensors):
        found = counters_of(tensors)
        if during:
            during.pop()()
        return found

    known = _native.TensorSet([tensor], fields_for, counters, None)
    _, epoch = known.epoch_of()
    tensor.add_(1)
    during.append(lambda: tensor.add_(1))
    assert known.epoch_of()[1] == epoch + 1
    assert known.epoch_of()[1] == epoch + 2
    assert known.epoch_of()[1] == epoch + 2
    tensor.add_(1)
    during.append(lambda: replace(tensor, torch.zeros(2)))
    assert known.epoch_of()[1] == epoch + 3
    assert known.epoch_of() is None


def test_threads_see_every_change() -> None:
    tensor, sets = torch.zeros(4), Weights(None, reads=True)
    sets.look([tensor])
    stop, wrong = threading.Event(), []

    def look_on() -> None:
        before = 0
        while not stop.is_set():
            version = tensor._version
            epoch = sets.look([tensor])[1][1]
            if epoch < before or version > counts.setdefault(epoch, tensor._version):
                wrong.append((epoch, before, version))
            before = epoch

    counts: dict[int, int] = {}  # by epoch: the last version that it may count
    threads = [threading.Thread(target=look_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        tensor.add_(1)
        time.sleep(0.0005)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


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
