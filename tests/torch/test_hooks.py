"""Hooks that are registered after compiling do what they do with torch's own backend."""

import pytest
import torch
from torch import nn
from torch.nn.modules import module as every

from softneuro.torch_backend import load
from tests.torch.conftest import OPTIONS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.rest = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        return self.rest(self.first(x).relu())


class Hooks:
    def __init__(self):
        self.calls = []

    def after(self, module, inputs, output):
        self.calls.append(f"after {type(module).__name__}")
        return output * 2

    def named(self, _module, _inputs, _named, output):
        self.calls.append("named")
        return output + 3

    def before(self, module, inputs):
        self.calls.append(f"before {type(module).__name__}")
        return (inputs[0] + 1,)


PLACES = {
    "a layer": lambda model, hooks: model.first.register_forward_hook(hooks.after),
    "before a layer": lambda model, hooks: model.first.register_forward_pre_hook(hooks.before),
    "a layer with names": lambda model, hooks: model.first.register_forward_hook(hooks.named, with_kwargs=True),
    "layers": lambda model, hooks: model.rest.register_forward_hook(hooks.after),
    "a function's layer": lambda model, hooks: model.rest[1].register_forward_hook(hooks.after),
    "the model": lambda model, hooks: model.register_forward_hook(hooks.after),
    "before the model": lambda model, hooks: model.register_forward_pre_hook(hooks.before),
    "every module": lambda _, hooks: every.register_module_forward_hook(hooks.after),
    "before every module": lambda _, hooks: every.register_module_forward_pre_hook(hooks.before),
}


def _outcome(how, backend, options, place, again):
    """Results and hooks' calls before a hook is registered, while it is, and after it is removed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x, hooks, found = Net().eval(), torch.rand(2, 4), Hooks(), []
    if how == "module.compile":
        model.compile(backend=backend, options=options)
        run = model
    else:
        run = torch.compile(model, backend=backend, options=options)

    def call():
        hooks.calls.clear()
        found.append((run(x).clone(), list(hooks.calls)))

    with torch.no_grad():
        call()
        handle = PLACES[place](model, hooks)
        try:
            call()
            if again:
                torch._dynamo.reset()
                call()
        finally:
            handle.remove()
        call()
    return found


@pytest.mark.parametrize("how", ["torch.compile", "module.compile"])
@pytest.mark.parametrize("place", PLACES)
def test_after_compiling(place, how):
    again = how == "torch.compile"
    # Those for every module are called by aot_eager's own module, too, with a list that they do not expect.
    expected = _outcome(how, "eager" if "every" in place else "aot_eager", None, place, again)
    for watch in (True, False):
        options = {**OPTIONS, "min_region_size": 1, "shortcuts": watch}
        found = _outcome(how, "softneuro", options, place, again)
        for (ours, called), (theirs, wanted) in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)
            assert called == wanted


@pytest.mark.parametrize("place", ["every module", "before every module"])
def test_a_program_while_there_are_hooks_for_every_module(place):
    model, x = Net().eval(), torch.rand(2, 4)
    program = torch.export.export(model, (x,))
    ours, host, hooks = load(program, min_region_size=1, **OPTIONS), program.module(), Hooks()
    with torch.no_grad():
        ours(x)
        handle = PLACES[place](model, hooks)
        try:
            found = []
            for run in (ours, host):
                hooks.calls.clear()
                try:
                    found.append((run(x), list(hooks.calls)))
                except Exception as error:
                    found.append((type(error), list(hooks.calls)))
        finally:
            handle.remove()
        assert found[0][1] == found[1][1]
        if isinstance(found[1][0], torch.Tensor):
            torch.testing.assert_close(found[0][0], found[1][0])
        else:
            assert found[0][0] is found[1][0]
        torch.testing.assert_close(ours(x), host(x))


@pytest.mark.parametrize("place", ["every module", "before every module"])
def test_a_region_that_is_left_to_the_host(place, slow):
    slow("net")
    expected = _outcome("torch.compile", "eager", None, place, False)
    options = {"never_worse": True, "tune": "profile", "time_budget_s": 0.1, "min_region_size": 1}
    found = _outcome("torch.compile", "softneuro", options, place, False)
    for (ours, called), (theirs, wanted) in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert called == wanted
