"""What is noticed of Python objects that change."""

import gc
import sys
import weakref

import numpy
import pytest
import torch

from softneuro.torch_backend import _native, ops
from softneuro.torch_backend.freshness.tensors import fields


@pytest.fixture(autouse=True)
def _loaded() -> None:
    ops.load()


def watch(tensors, check) -> _native.TensorWatch:
    made = _native.TensorWatch(tensors, fields())
    made.ask_also(check, tensors)
    return made


def test_changes_are_told() -> None:
    class Thing:
        pass

    thing, items = Thing(), {"a": 1}
    thing.items = items

    def state() -> _native.ObjectState:
        made = _native.ObjectState((int, str))
        made.add_instance(thing)
        made.add_dict(items)
        return made

    changes = [
        lambda: items.update(b=2),
        lambda: items.pop("b"),
        lambda: items.update(a=2),
        lambda: setattr(thing, "more", 1),
        lambda: delattr(thing, "more"),
        lambda: setattr(thing, "__dict__", {"items": items}),
        lambda: setattr(thing, "__class__", type("Other", (), {})),
    ]
    for change in changes:
        before = state()
        assert before.unchanged()
        assert before.unchanged()
        assert before.hits == 2
        change()
        assert not before.unchanged()
        assert state().unchanged()
    with pytest.raises(TypeError, match="without a dictionary"):
        _native.ObjectState((int, str)).add_instance(3)


def test_tensors_are_asked_about() -> None:
    tensor, answer = torch.zeros(3), [True]
    state = _native.ObjectState((int, str))
    state.set_tensors(watch([tensor, tensor], lambda a, b: a is tensor and b is tensor and answer[0]))
    assert state.unchanged()
    answer[0] = False
    assert not state.unchanged()


def test_objects_are_told_apart_from_tensors() -> None:
    items, tensor, answer = {"a": 1}, torch.zeros(3), [True]
    state = _native.ObjectState((int, str))
    state.add_dict(items)
    state.set_tensors(watch([tensor], lambda _: answer[0]))
    assert state.includes([items, items])
    assert state.includes([])
    assert not state.includes([items, {}])
    answer[0] = False
    assert state.holds()
    assert not state.unchanged()
    items["b"] = 1
    assert not state.holds()


def test_only_constants_are_kept_alive() -> None:
    class Thing:
        pass

    thing = Thing()
    thing.array = numpy.zeros(4)
    thing.pair = (10**20, "a" * 50)
    state = _native.ObjectState((int, str))
    state.add_instance(thing)
    array, pair = weakref.ref(thing.array), thing.pair
    before = sys.getrefcount(pair)
    del thing.array
    assert array() is None
    assert not state.unchanged()
    del state
    assert sys.getrefcount(pair) == before - 1


def test_collections_wait() -> None:
    """What one ran could free the tensors that are about to be asked about."""
    state, tensor = _native.ObjectState(()), torch.zeros(1)
    state.set_tensors(watch([tensor], lambda _: not gc.isenabled()))
    for enable in (gc.enable, gc.disable):
        try:
            enable()
            before = gc.isenabled()
            assert state.unchanged()
            assert gc.isenabled() == before
        finally:
            gc.enable()
