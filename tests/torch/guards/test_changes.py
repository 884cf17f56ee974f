"""Guards asked only after a change: the same recompilations as with all of them, whatever is done to a model."""

import copy

import pytest
import torch
from torch import nn

from tests.torch.guards.model import Block, Counting, Doubled, Model


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


def recompilations(make, change, x, compile_model, watch: bool) -> list[int]:
    """Graphs made so far, after each of a few calls: before a change, after it, and after `eval()`."""
    torch._dynamo.reset()
    model, count = make(), Counting()
    model.blocks[0].conv.padding_mode_before = "zeros"
    compiled, graphs = compile_model(model, backend=count, min_region_size=1, shortcuts=watch), []
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


# Kinds of changes that others stand for, too: these alone are for every run.
QUICK = {"nothing", "train", "stride", "by __dict__", "another class", "another module", "bias", "in place", "data"}


def each_change() -> list[object]:
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in CHANGES]


@pytest.mark.parametrize("name", each_change())
def test_changes_are_noticed_as_by_all_guards(name, image, watching, compile_model) -> None:
    state = torch.get_rng_state()

    def make():
        torch.set_rng_state(state)
        return Model().eval()

    torch.manual_seed(0)
    expected = recompilations(make, CHANGES[name], image, compile_model, False)
    assert not watching
    assert recompilations(make, CHANGES[name], image, compile_model, True) == expected
    assert watching


def test_gradients_wanted_after_compiling(image, compile_model) -> None:
    model = Model().eval().requires_grad_(False)
    compiled = compile_model(model, min_region_size=1)
    with torch.enable_grad():
        for _ in range(3):
            assert not compiled(image).requires_grad
        model.last.weight.requires_grad_(True)
        with pytest.warns(UserWarning, match="gradients are recorded"):
            compiled(image).sum().backward()
    assert model.last.weight.grad is not None


@pytest.mark.parametrize("watch", [True, False])
def test_modules_that_share_code(image, watch, watching, compile_model, agree) -> None:
    count = Counting()
    models = [Model().eval() for _ in range(3)]
    models[2].last.stride = (2, 2)
    compiled = [compile_model(model, backend=count, min_region_size=1, shortcuts=watch) for model in models]
    for _ in range(3):
        for model, one in zip(models, compiled, strict=True):
            agree(one, model, image)
    assert count.graphs == 2  # the second has what the first was compiled for
    assert sorted(len(guard.all_seen) for guard in watching) == ([1, 2] if watch else [])
    models[1].blocks[0].norm.eps = 0.5
    for model, one in zip(models, compiled, strict=True):
        agree(one, model, image)
    assert count.graphs == 4  # one that reads eps, too


def test_modules_that_come_and_go(image, compile_model) -> None:
    def function(model, x):
        return model(x)

    compiled = compile_model(function, min_region_size=1)
    for i in range(12):  # most of them where one before them was
        model = Model().eval()
        model.last.stride = (1 + i % 2, 1)
        for _ in range(2):
            torch.testing.assert_close(compiled(model, image), model(image), atol=1e-4, rtol=1e-4)
        del model


def test_a_module_of_a_closure(image, compile_model) -> None:
    model = Model().eval()

    function = compile_model(lambda x: model(x) * 2, min_region_size=1)
    for change in (lambda: None, model.train, lambda: setattr(model.last, "stride", (2, 2))):
        change()
        for _ in range(3):
            expected = copy.deepcopy(model)(image) * 2
            torch.testing.assert_close(function(image), expected, atol=1e-4, rtol=1e-4)


def test_filtered_guards(image, compile_model, agree) -> None:
    model = Model().eval()
    seen = []

    def some(entries):
        seen.append({entry.guard_type for entry in entries})
        return [entry.guard_type != "CONSTANT_MATCH" for entry in entries]

    compiled = compile_model(model, min_region_size=1, guard_filter_fn=some)
    agree(compiled, model, image)
    assert {"TENSOR_MATCH", "TYPE_MATCH", "CONSTANT_MATCH"} <= seen[0]
    before = compiled(image)
    model.blocks[0].norm.training = True  # is compared by a guard that the filter has taken away
    torch.testing.assert_close(compiled(image), before)
    model.eval()
    model.last.weight = nn.Parameter(torch.randn(1, 4, 1, 1))
    agree(compiled, model, image)
