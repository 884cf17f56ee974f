"""When guards are asked, and that they are where anything is not as expected."""

import threading

import pytest
import torch

import softneuro
from softneuro.torch_backend.freshness import guards
from softneuro.torch_backend.freshness.tensors import kinds_of
from tests.torch.guards.model import Counting, Model


def test_guards_are_asked_once(image, watching, compile_model) -> None:
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1)
    compiled(image)
    (watch,) = watching
    asked = []
    everything = watch._guards.check
    watch._guards.check = lambda scope: asked.append(1) or everything(scope)
    for _ in range(5):
        compiled(image)
    assert not asked
    model.remark = "new"
    for _ in range(5):
        compiled(image)
    assert len(asked) == 1
    for _ in range(5):
        model.eval()  # which sets what is set already
        compiled(image)
    assert len(asked) == 1


def test_state_is_taken_less_often_where_it_never_holds(image, monkeypatch, watching, compile_model, agree) -> None:
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1)
    compiled(image)
    (watch,) = watching
    taken = []
    take = watch._state
    monkeypatch.setattr(watch, "_state", lambda root: taken.append(1) or take(root))
    for i in range(100):
        model.remark = i
        agree(compiled, model, image)
    assert 3 <= len(taken) <= 8
    for _ in range(100):  # and again once it does
        agree(compiled, model, image)
    (seen,) = watch.all_seen.values()
    assert seen.state is not None
    assert seen.state.hits > 30


def test_changed_while_the_state_is_taken(image, watching, monkeypatch, compile_model, agree) -> None:
    model, count = Model().eval(), Counting()
    compiled = compile_model(model, backend=count, min_region_size=1)
    compiled(image)
    (watch,) = watching
    take = watch._state

    def changed(root):
        root.last.stride = (2, 2)  # after the guards were asked
        return take(root)

    monkeypatch.setattr(watch, "_state", changed)
    model.remark = "new"
    compiled(image)  # as with all guards, those asked before are believed for this call
    monkeypatch.setattr(watch, "_state", take)
    for _ in range(3):
        agree(compiled, model, image)
    assert count.graphs == 2


def test_threads(image, compile_model, agree) -> None:
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1)
    expected = [compiled(image)]
    model.last.stride = (2, 2)
    expected.append(compiled(image))
    failures = []

    def call() -> None:
        with torch.no_grad():
            for _ in range(200):
                y = compiled(image)
                if not any(y.shape == e.shape and torch.allclose(y, e, atol=1e-4) for e in expected):
                    failures.append(y)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(200):
        model.last.stride = (1 + i % 2, 1 + i % 2)
    for thread in threads:
        thread.join()
    assert not failures
    for stride in (1, 2):
        model.last.stride = (stride, stride)
        for _ in range(3):
            agree(compiled, model, image)


def test_recursive_dict_tags(image, watching, compile_model, agree) -> None:
    """With which Dynamo passes over parts of its tree: what ours stands for would never be asked."""
    model = Model().eval()
    with torch._dynamo.config.patch(use_recursive_dict_tags_for_guards=True):
        agree(compile_model(model, min_region_size=1), model, image)
    assert not watching


@pytest.mark.parametrize("broken", ["_Apart", "Paths", "root_of"])
def test_another_dynamo(image, broken, monkeypatch, compile_model, agree) -> None:
    def fail(*_):
        raise TypeError("not as expected")

    monkeypatch.setattr(guards, broken, fail)
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1)
    agree(compiled, model, image)
    model.last.stride = (2, 2)
    agree(compiled, model, image)


def test_state_that_cannot_be_taken(image, monkeypatch, compile_model, agree) -> None:
    def fail(*_):
        raise softneuro.Error("not to be told")

    monkeypatch.setattr(guards, "kinds_of", fail)
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1)
    for _ in range(3):
        agree(compiled, model, image)
    model.last.stride = (2, 2)
    agree(compiled, model, image)


def test_state_that_raises(image, watching, compile_model, agree) -> None:
    def fail(*_):
        raise RuntimeError("what is this?")

    model, count = Model().eval(), Counting()
    compiled = compile_model(model, backend=count, min_region_size=1)
    compiled(image)
    (watch,) = watching
    (seen,) = watch.all_seen.values()
    tensors = kinds_of([model.last.weight])
    tensors.ask_also(fail, [model.last.weight])
    seen.state.set_tensors(tensors)
    for _ in range(3):
        agree(compiled, model, image)
    assert count.graphs == 1
