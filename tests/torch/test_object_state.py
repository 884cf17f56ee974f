"""What is noticed of Python objects that change."""

import pytest
import torch

import softneuro


def test_changes_are_told() -> None:
    class Thing:
        pass

    thing, items = Thing(), {"a": 1}
    thing.items = items

    def state() -> softneuro._C.ObjectState:
        made = softneuro._C.ObjectState()
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
        softneuro._C.ObjectState().add_instance(3)


def test_tensors_are_asked_about() -> None:
    tensor, answer = torch.zeros(3), [True]
    state = softneuro._C.ObjectState()
    lines = softneuro._C.CacheLines()
    state.set_tensors([tensor, tensor], lambda a, b: a is tensor and b is tensor and answer[0], lines)
    assert state.unchanged()
    answer[0] = False
    assert not state.unchanged()
