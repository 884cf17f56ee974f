"""Weights that compiled code does not fetch one by one: each is looked at after any change of one of them."""

import gc
import threading

import pytest
import torch
from torch import nn

from softneuro.torch_backend import _native, ops
from softneuro.torch_backend.call import runtime
from softneuro.torch_backend.freshness import fetching, guards
from softneuro.torch_backend.freshness.weights import Weights
from tests.torch.conftest import OPTIONS, small

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def image():
    return torch.randn(1, 3, 12, 12)


@pytest.fixture
def made(monkeypatch):
    """By call that found no net of the weights, the first weight."""
    first: list[torch.Tensor] = []
    resolve = runtime.RegionRuntime.resolve

    def noted(self, inputs, weights, sizes):
        first.append(weights[0])
        return resolve(self, inputs, weights, sizes)

    monkeypatch.setattr(runtime.RegionRuntime, "resolve", noted)
    return first


def write(model):
    model[0].weight[1, 1, 1, 1] = 50.0


def write_statistics(model):
    model[1].running_mean.add_(1.0)


def replace_data(model):
    model[3].bias.data = torch.randn(4)


def replace_parameter(model):
    model[0].bias = nn.Parameter(torch.randn(8))


def replace_module(model):
    model[3] = nn.Conv2d(8, 4, 3).eval()


def load(model):
    model.load_state_dict(small().state_dict(), assign=True)


def test_nets_are_made_once(image, made, compile_model, agree) -> None:
    model = small()
    compiled = compile_model(model)
    for _ in range(5):
        agree(compiled, model, image)
    assert len(made) == 1


@pytest.mark.parametrize("change", [write, write_statistics, replace_data, replace_parameter, replace_module, load])
def test_and_again_after_a_change(change, image, made, compile_model, agree) -> None:
    model = small()
    compiled = compile_model(model)
    for times in range(1, 4):
        for _ in range(3):
            agree(compiled, model, image)
        assert len(made) == times
        change(model)
        gc.collect()


def test_of_each_module_by_itself(image, made, compile_model, agree) -> None:
    """Dynamo compiles their class's code once."""
    models = [small(), small()]
    compiled = [compile_model(model) for model in models]
    for _ in range(3):
        for one, model in zip(compiled, models, strict=True):
            agree(one, model, image)
    assert len(made) == 2
    write(models[1])
    for one, model in zip(compiled, models, strict=True):
        agree(one, model, image)
    assert len(made) == 3
    assert made[2] is made[1]


def test_shapes_and_threads(image, made, compile_model, agree) -> None:
    model = small()
    compiled = compile_model(model, dynamic=True)
    images = [image, torch.randn(2, 3, 12, 14), torch.randn(1, 3, 17, 9)]
    for one in [*images, image]:  # a size that is left open is one of other code
        agree(compiled, model, one)
    count = len(made)
    for one in [*images, *images]:
        agree(compiled, model, one)
    assert len(made) == count
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1 if before > 1 else 2)
        for _ in range(3):
            agree(compiled, model, image)
    finally:
        torch.set_num_threads(before)


class Mixed(nn.Module):
    """A weight of it is not reached by name, or is more than a weight."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.others = [torch.randn(4, 8, 3, 3)]
        self.last = nn.Conv2d(8, 4, 3)

    def forward(self, x):
        y = self.conv(x).relu()
        if self.kind == "listed":
            return torch.conv2d(y, self.others[0])
        if self.kind == "given back":
            return self.last(y), self.last.weight
        if self.kind == "computed":
            return torch.conv2d(y, self.last.weight * 2)
        return self.last(y) + self.conv.bias[:4].view(1, 4, 1, 1)


@pytest.mark.parametrize("kind", ["listed", "given back", "computed", "used twice"])
def test_weights_that_are_more_than_that(kind, image, compile_model, agree) -> None:
    model = Mixed(kind).eval()
    compiled = compile_model(model, min_region_size=1)
    for change in (lambda: None, lambda: model.conv.weight.mul_(2), lambda: model.last.weight.data.mul_(-1)):
        change()
        for _ in range(3):
            found, expected = compiled(image), model(image)
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("where", "broken"), [(fetching, "_fetch_apart"), (guards, "_Apart")])
def test_another_dynamo(where, broken, image, monkeypatch, compile_model, agree) -> None:
    def fail(*_):
        raise TypeError("not as expected")

    monkeypatch.setattr(where, broken, fail)
    model = small()
    compiled = compile_model(model)
    for change in (lambda _: None, write, replace_parameter, replace_module):
        change(model)
        for _ in range(2):
            agree(compiled, model, image)


def test_guards_that_are_not_asked(image, compile_model, agree) -> None:
    model = small()
    compiled = compile_model(model)
    agree(compiled, model, image)
    kept = model[0].bias
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
        for change in (replace_parameter, write, replace_module):
            agree(compiled, model, image)
            change(model)
            agree(compiled, model, image)
    model[0].bias = kept
    agree(compiled, model, image)


def test_guards_that_are_not_made(image, agree) -> None:
    model = small()
    drop = torch.compiler.skip_guard_on_all_nn_modules_unsafe
    compiled = torch.compile(model, backend="softneuro", options={**OPTIONS, "guard_filter_fn": drop})
    kept = model[0].bias
    for change in (lambda _: None, replace_parameter, write):
        change(model)
        for _ in range(2):
            agree(compiled, model, image)
    model[0].bias = kept
    agree(compiled, model, image)


def test_guards_that_are_made_of_a_part(image, agree) -> None:
    """What these have looked at does not lead to every weight."""

    def first_only(entries):
        return [not entry.is_global and "[1]" not in entry.name and "[3]" not in entry.name for entry in entries]

    model = small()
    compiled = torch.compile(model, backend="softneuro", options={**OPTIONS, "guard_filter_fn": first_only})
    for change in (lambda _: None, replace_parameter, replace_module, write, replace_data):
        change(model)
        for _ in range(4):
            agree(compiled, model, image)


def test_weights_replaced_during_calls(image, compile_model) -> None:
    """A call takes the old ones or the new, whichever thread comes first."""
    model = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.Conv2d(4, 4, 1, bias=False)).eval()
    compiled = compile_model(model)
    base = model(image)
    weight = model[0].weight.detach().clone()
    stop, wrong = threading.Event(), []

    def call() -> None:
        with torch.no_grad():
            while not stop.is_set():
                scale = (compiled(image) * base).sum() / (base * base).sum()
                if min(abs(scale - 1), abs(scale - 3)) > 1e-3:
                    wrong.append(scale)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for i in range(60):
        model[0].weight = nn.Parameter(weight * (3 if i % 2 else 1))
        stop.wait(0.005)
    stop.set()
    for caller in callers:
        caller.join()
    assert not wrong


def test_weights_replaced_while_they_are_taken(image, monkeypatch, compile_model, agree) -> None:
    """What leads to the new ones is not taken for what leads to the old, while another call made at the new."""
    calls, create = [], fetching.FetchingCall.__init__

    def noted(self, *arguments):
        create(self, *arguments)
        calls.append(self)

    monkeypatch.setattr(fetching.FetchingCall, "__init__", noted)
    model = small()
    compiled = compile_model(model)
    agree(compiled, model, image)
    (call,) = calls
    take, kept = call._take, model[0].bias

    def taken(root):
        call._take = take
        found = take(root)
        replace_parameter(model)
        assert call._watch.guard(model)
        return found

    call._take = taken
    compiled(image)
    for _ in range(2):
        agree(compiled, model, image)
    model[0].bias = kept
    agree(compiled, model, image)


def test_known_weights_are_those_of_a_living_root() -> None:
    ops.load()
    root, other, tensors = Holder(), Holder(), [torch.zeros(2), torch.zeros(3)]
    sets, known = Weights(None, reads=True), _native.KnownWeights()
    one, now = sets.look(tensors)
    state = _native.ObjectState(())
    state.add_instance(root)
    known.set(root, one, state)
    assert known.find(root) == now
    assert known.find(other) is None
    assert known.find(None) is None
    tensors[0].add_(1)
    assert known.find(root) == (now[0], now[1] + 1)
    root.more = 1
    assert known.find(root) is None
    known.set(None, one, None)
    assert known.find(None) == (now[0], now[1] + 1)
    state = _native.ObjectState(())
    state.add_instance(root)
    known.set(root, one, state)
    assert known.find(root) is not None
    at = id(root)
    del root
    again = [Holder() for _ in range(9)]
    assert [known.find(one) for one in again] == [None] * 9, any(id(one) == at for one in again)
    tensors.clear()
    gc.collect()
    assert known.find(None) is None


class Holder:
    def __init__(self, **items: object) -> None:
        self.__dict__.update(items)


def test_paths() -> None:
    deep = Holder(x=[5, 6])
    root = Holder(items={"a": {3: deep}}, other="b")
    steps = [(0, True, "items"), (1, False, "a"), (2, False, 3), (3, True, "x"), (4, False, 1), (0, True, "other")]
    paths = _native.ObjectPaths(steps, [5, 0, 6, 3])
    assert paths.take(root) == (6, root, "b", deep)
    assert paths.asked(root) == [root, root.items, root.items["a"], deep, deep.x, root]
    root.items["a"][3] = other = Holder(x=[7, 8])
    assert paths.take(root) == (8, root, "b", other)
    del root.items["a"][3]
    with pytest.raises(KeyError, match="3"):
        paths.take(root)
    root.items = 1
    with pytest.raises(TypeError):
        paths.take(root)
    with pytest.raises(AttributeError):
        paths.take(1)


@pytest.mark.parametrize(("steps", "chosen"), [([(1, True, "x")], []), ([], [1])])
def test_paths_from_nowhere(steps, chosen) -> None:
    with pytest.raises(IndexError, match="ObjectPaths"):
        _native.ObjectPaths(steps, chosen)


def test_weights_without_memory(image, compile_model, agree) -> None:
    """A derivative's direction makes tensors of them that only stand for others."""
    model = small()
    compiled = compile_model(model, fullgraph=False)
    agree(compiled, model, image)
    weights = dict(model.named_parameters())
    direction = {name: torch.ones_like(weight) for name, weight in weights.items()}

    def slope(called):
        return torch.func.jvp(lambda w: torch.func.functional_call(called, w, (image,)), (weights,), (direction,))

    for one, other in zip(slope(compiled), slope(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    agree(compiled, model, image)
