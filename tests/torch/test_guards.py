"""Guards asked only after a change: the same recompilations as with all of them, whatever is done to a model."""

import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend import guards
from tests.torch.guarded import OPTIONS, Block, Counting, Doubled, Model, check, compiled_of


@pytest.fixture
def image():
    return torch.randn(1, 4, 8, 8)


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


@pytest.fixture
def watching(monkeypatch):
    """The guards made in the test's course. Dynamo keeps the guards of all that it ever compiled."""
    made: list[guards.ModulesUnchanged] = []
    create = guards.ModulesUnchanged.__init__

    def noted(self, *arguments):
        create(self, *arguments)
        made.append(self)

    monkeypatch.setattr(guards.ModulesUnchanged, "__init__", noted)
    return made


def replace_dict(module: nn.Module, **changes) -> None:
    module.__dict__ = {**module.__dict__, **changes}


def set_data(parameter: torch.Tensor, data: torch.Tensor) -> None:
    parameter.data = data


CHANGES = {
    "nothing": lambda m: None,
    "train": lambda m: m.train(),
    "norm alone in training": lambda m: m.blocks[1].norm.train(),
    "stride": lambda m: setattr(m.last, "stride", (2, 2)),
    "padding": lambda m: setattr(m.last, "padding", (1, 1)),
    "eps": lambda m: setattr(m.blocks[0].norm, "eps", 0.5),
    "by __dict__": lambda m: m.blocks[0].norm.__dict__.update(eps=0.5),
    "past nn.Module": lambda m: object.__setattr__(m.blocks[0].norm, "eps", 0.5),
    "another __dict__": lambda m: replace_dict(m.blocks[0].norm, eps=0.5),
    "another __dict__ of the root": lambda m: replace_dict(m, training=False),
    "another class": lambda m: setattr(m.blocks[1], "__class__", Doubled),
    "own forward": lambda m: setattr(m.blocks[1], "forward", lambda x: x + 1),
    "another module": lambda m: setattr(m, "last", nn.Conv2d(4, 1, 1)),
    "the same kind of module": lambda m: setattr(m.blocks[0], "conv", nn.Conv2d(4, 4, 3, padding=1)),
    "parameter": lambda m: setattr(m.last, "weight", nn.Parameter(torch.randn(2, 4, 1, 1))),
    "parameter of another shape": lambda m: setattr(m.last, "weight", nn.Parameter(torch.randn(1, 4, 1, 1))),
    "bias": lambda m: setattr(m.last, "bias", nn.Parameter(torch.randn(2))),
    "no bias": lambda m: setattr(m.blocks[0].conv, "bias", None),
    "in place": lambda m: m.last.weight.mul_(3),
    "data": lambda m: set_data(m.last.weight, torch.randn(2, 4, 1, 1)),
    "data of another shape": lambda m: set_data(m.last.weight, torch.randn(1, 4, 1, 1)),
    "data of other strides": lambda m: set_data(m.blocks[0].conv.weight, torch.randn(3, 3, 4, 4).permute(3, 2, 1, 0)),
    "transposed where it is": lambda m: set_data(m.blocks[0].conv.weight, m.blocks[0].conv.weight.data.transpose(0, 1)),
    "data of another dtype": lambda m: (m.double(), m.float()),
    "gradients": lambda m: m.requires_grad_(False),
    "buffer": lambda m: setattr(m, "shift", torch.randn(2, 1, 1)),
    "statistics": lambda m: setattr(m.blocks[0].norm, "running_mean", torch.randn(4)),
    "a module more": lambda m: m.blocks.append(Block().eval()),
    "a module less": lambda m: m.blocks.pop(0),
    "modules in another order": lambda m: m.blocks._modules.update({"0": m.blocks[1], "1": m.blocks[0]}),
    "a key of a dictionary": lambda m: m.blocks[0].settings.update(scale=3.0),
    "a key deeper down": lambda m: m.blocks[0].settings["deeper"].update(offset=3.0),
    "an item of a list": lambda m: m.blocks[0].powers.append(5),
    "what nobody reads": lambda m: setattr(m, "remark", "none"),
    "what nobody reads, gone": lambda m: delattr(m.blocks[0].conv, "padding_mode_before"),
}


def recompilations(make, change, x, watch: bool) -> list[int]:
    """Graphs made so far, after each of a few calls around a change and its undoing by a copy of the state before."""
    torch._dynamo.reset()
    model, count = make(), Counting()
    model.blocks[0].conv.padding_mode_before = "zeros"
    compiled, graphs = compiled_of(model, count, watch_modules=watch), []
    for step in range(7):
        if step == 3:
            change(model)
        expected = copy.deepcopy(model)(x)
        actual = compiled(x)
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
        graphs.append(count.graphs)
        if step == 5:
            model.eval()
    return graphs


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_noticed_as_by_all_guards(name, image, watching) -> None:
    state = torch.get_rng_state()

    def make():
        torch.set_rng_state(state)
        return Model().eval()

    torch.manual_seed(0)
    expected = recompilations(make, CHANGES[name], image, False)
    assert not watching
    assert recompilations(make, CHANGES[name], image, True) == expected
    assert watching


def test_gradients_wanted_after_compiling(image) -> None:
    model = Model().eval().requires_grad_(False)
    compiled = compiled_of(model)
    with torch.enable_grad():
        for _ in range(3):
            assert not compiled(image).requires_grad
        model.last.weight.requires_grad_(True)
        with pytest.warns(UserWarning, match="gradients are recorded"):
            compiled(image).sum().backward()
    assert model.last.weight.grad is not None


def test_guards_are_asked_once(image, watching) -> None:
    model = Model().eval()
    compiled = compiled_of(model)
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


def test_state_is_taken_less_often_where_it_never_holds(image, monkeypatch, watching) -> None:
    model = Model().eval()
    compiled = compiled_of(model)
    compiled(image)
    (watch,) = watching
    taken = []
    take = watch._state
    monkeypatch.setattr(watch, "_state", lambda root: taken.append(1) or take(root))
    for i in range(100):
        model.remark = i
        check(compiled, model, image)
    assert 3 <= len(taken) <= 8
    for _ in range(100):  # and again once it does
        check(compiled, model, image)
    (seen,) = watch._seen.values()
    assert seen.state is not None
    assert seen.state.hits > 30


@pytest.mark.parametrize("watch", [True, False])
def test_modules_that_share_code(image, watch, watching) -> None:
    count = Counting()
    models = [Model().eval() for _ in range(3)]
    models[2].last.stride = (2, 2)
    compiled = [compiled_of(model, count, watch_modules=watch) for model in models]
    for _ in range(3):
        for model, one in zip(models, compiled, strict=True):
            check(one, model, image)
    assert count.graphs == 2  # the second has what the first was compiled for
    assert sorted(len(guard._seen) for guard in watching) == ([1, 2] if watch else [])
    models[1].blocks[0].norm.eps = 0.5
    for model, one in zip(models, compiled, strict=True):
        check(one, model, image)
    assert count.graphs == 4  # one that reads eps, too


@pytest.mark.parametrize("watch", [True, False])
def test_models_are_not_kept_alive(image, watch, watching) -> None:
    model = Model().eval()
    compiled = compiled_of(model, watch_modules=watch)
    for _ in range(3):
        compiled(image)
    gone = [weakref.ref(model), weakref.ref(model.blocks[0]), weakref.ref(model.last.weight)]
    del model, compiled
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    assert all(not w._seen for w in watching)


def test_nothing_waits_for_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.randn(1, 4, 8, 8)
        model = Model().eval()
        compiled_of(model)(x)
        gone = weakref.ref(x)
        del x
        assert gone() is None
    finally:
        gc.enable()


def test_modules_that_come_and_go(image) -> None:
    def function(model, x):
        return model(x)

    compiled = torch.compile(function, backend="softneuro", options=OPTIONS)
    for i in range(12):  # most of them where one before them was
        model = Model().eval()
        model.last.stride = (1 + i % 2, 1)
        for _ in range(2):
            torch.testing.assert_close(compiled(model, image), model(image), atol=1e-4, rtol=1e-4)
        del model


def test_a_module_of_a_closure(image) -> None:
    model = Model().eval()

    @torch.compile(backend="softneuro", options=OPTIONS)
    def function(x):
        return model(x) * 2

    for change in (lambda: None, model.train, lambda: setattr(model.last, "stride", (2, 2))):
        change()
        for _ in range(3):
            expected = copy.deepcopy(model)(image) * 2
            torch.testing.assert_close(function(image), expected, atol=1e-4, rtol=1e-4)


def test_filtered_guards(image) -> None:
    model = Model().eval()
    seen = []

    def some(entries):
        seen.append({entry.guard_type for entry in entries})
        return [entry.guard_type != "CONSTANT_MATCH" for entry in entries]

    compiled = compiled_of(model, guard_filter_fn=some)
    check(compiled, model, image)
    assert {"TENSOR_MATCH", "TYPE_MATCH", "CONSTANT_MATCH"} <= seen[0]
    before = compiled(image)
    model.blocks[0].norm.training = True  # is compared by a guard that the filter has taken away
    torch.testing.assert_close(compiled(image), before)
    model.eval()
    model.last.weight = nn.Parameter(torch.randn(1, 4, 1, 1))
    check(compiled, model, image)


def test_recursive_dict_tags(image, watching) -> None:
    """With which Dynamo passes over parts of its tree: what ours stands for would never be asked."""
    model = Model().eval()
    with torch._dynamo.config.patch(use_recursive_dict_tags_for_guards=True):
        check(compiled_of(model), model, image)
    assert not watching


def test_changed_while_the_state_is_taken(image, watching, monkeypatch) -> None:
    model, count = Model().eval(), Counting()
    compiled = compiled_of(model, count)
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
        check(compiled, model, image)
    assert count.graphs == 2


@pytest.mark.parametrize("broken", ["_Apart", "_Paths", "_root_of"])
def test_another_dynamo(image, broken, monkeypatch) -> None:
    def fail(*_):
        raise TypeError("not as expected")

    monkeypatch.setattr(guards, broken, fail)
    model = Model().eval()
    compiled = compiled_of(model)
    check(compiled, model, image)
    model.last.stride = (2, 2)
    check(compiled, model, image)


def test_state_that_cannot_be_taken(image, monkeypatch) -> None:
    def fail(*_):
        raise softneuro.Error("no watcher left")

    monkeypatch.setattr(guards, "lines_of", fail)
    model = Model().eval()
    compiled = compiled_of(model)
    for _ in range(3):
        check(compiled, model, image)
    model.last.stride = (2, 2)
    check(compiled, model, image)


def test_state_that_raises(image, watching) -> None:
    def fail(*_):
        raise RuntimeError("what is this?")

    model, count = Model().eval(), Counting()
    compiled = compiled_of(model, count)
    compiled(image)
    (watch,) = watching
    (seen,) = watch._seen.values()
    seen.state.set_tensors([model.last.weight], fail, softneuro._C.CacheLines())
    for _ in range(3):
        check(compiled, model, image)
    assert count.graphs == 1


def test_threads(image) -> None:
    model = Model().eval()
    compiled = compiled_of(model)
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
