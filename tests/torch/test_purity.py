"""Ops of other libraries may have a state, or be random: they run when the host runs them, as often, in its order."""

import copy

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain, load
from tests.torch.conftest import OPTIONS


class Library:
    """Ops that count their calls, or draw numbers, and tell torch of neither."""

    def __init__(self, library):
        self.calls = []
        self._library = library
        for name in ("counted", "drawn"):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, getattr(self, name), "CPU")
            library.impl(name, torch.empty_like, "Meta")
        library.define("counter() -> Tensor")
        library.impl("counter", self.counter, "CompositeExplicitAutograd")
        torch.library.register_fake("softneuro_test::counter", lambda: torch.empty(4, 1, 1), lib=library)
        library.define("written(Tensor(a!) x) -> ()")
        library.impl("written", self.written, "CPU")
        torch.library.register_fake("softneuro_test::written", lambda x: None, lib=library)

    def counted(self, x):
        self.calls.append("counted")
        return x * len(self.calls)

    def drawn(self, x):
        self.calls.append("drawn")
        return x * torch.rand_like(x)

    def counter(self):
        self.calls.append("counter")
        return torch.full((4, 1, 1), float(len(self.calls)))

    def written(self, x):
        self.calls.append("written")
        x.add_(len(self.calls))


@pytest.fixture
def library():
    with torch.library._scoped_library("softneuro_test", "FRAGMENT") as scoped:
        yield Library(scoped)


def op(name):
    return getattr(torch.ops.softneuro_test, name)


class Weighted(nn.Module):
    """What `make` gives of a weight scales an image, and convolves it."""

    def __init__(self, make):
        super().__init__()
        self.make = make
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.scale = nn.Parameter(torch.rand(4, 1, 1))

    def forward(self, x):
        x = self.first(x).relu() * self.make(self.scale)
        return torch.conv2d(x, self.make(self.second.weight)).relu() + 1


def _by(name):
    def make(w):
        return op(name)(w)

    return make


def _twice(w):
    return op("counted")(w) * op("counted")(w + 1)


def _nothing(w):
    return w * op("counter")().sum()


def _unused(w):
    op("counted")(w)
    return w


def _in_place(w):
    w = w.clone()
    op("written")(w)
    return w


MAKERS = {
    "counted": _by("counted"),
    "counted twice": _twice,
    "drawn": _by("drawn"),
    "drawn from what is drawn": lambda w: op("drawn")(op("drawn")(w).exp()),
    "of nothing": _nothing,
    "unused": _unused,
    "written": _in_place,
    "drawn by torch": lambda w: w * torch.rand_like(w),
}


def _outcome(run, x, library, calls=4):
    """Results and effects of some calls. The first is apart: what is made at it may run more."""
    library.calls.clear()
    torch.manual_seed(1)
    return [run(x).detach().clone() for _ in range(calls)], list(library.calls)


@pytest.mark.parametrize("mode", ["no_grad", "inference", "recording"])
@pytest.mark.parametrize("name", MAKERS)
def test_runs_as_often_as_the_host(name, mode, library, compile_model):
    model, x = Weighted(MAKERS[name]).eval(), torch.randn(2, 3, 8, 8)
    grad = {"no_grad": torch.no_grad, "inference": torch.inference_mode, "recording": torch.enable_grad}[mode]
    with grad():
        eager = torch.compile(model, backend="aot_eager") if mode != "recording" else model
        expected = _outcome(eager, x, library)
        torch._dynamo.reset()
        found = _outcome(compile_model(model, fullgraph=False, min_region_size=1), x, library)
    assert found[1] == expected[1]
    for ours, theirs in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MAKERS)
def test_in_a_program(name, library):
    model, x = Weighted(MAKERS[name]).eval(), torch.randn(2, 3, 8, 8)
    program = torch.export.export(model, (x,))
    with torch.no_grad():
        expected = _outcome(program.module(), x, library)
        ours = load(program, **{**OPTIONS, "min_region_size": 1})
        found = _outcome(ours, x, library)
    assert len(found[1]) == len(expected[1]) or name == "unused"
    for ours, theirs in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_judged_and_explained(library, compile_model):
    """Comparing a region with the host runs it many times, and what has effects not once more."""
    model, x = Weighted(MAKERS["counted"]).eval(), torch.randn(2, 3, 8, 8)
    compiled = compile_model(model, never_worse=True, tune="profile", time_budget_s=0.1, min_region_size=1)
    with torch.no_grad():
        compiled(x)
        assert len(library.calls) == 2
    assert "aten.conv" in explain(compiled, x)
    assert len(library.calls) == 4


@pytest.mark.parametrize("draw", ["custom", "torch"])
def test_effects_keep_their_order(draw, library, compile_model):
    """A region that needs the second of two draws would have them change places, if it also feeds the first."""
    one = op("drawn") if draw == "custom" else lambda x: torch.rand_like(x) * x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3))
            self.weight = nn.Parameter(torch.rand(2, 4, 5, 5))

        def forward(self, x):
            y = self.convs[0](x).relu()
            first = one(self.convs[1](torch.erfinv(y.clamp(-0.9, 0.9))).relu())
            return self.convs[2](y + one(self.weight)).relu(), first

    model, x = Model().eval(), torch.randn(2, 4, 5, 5)
    ours = compile_model(copy.deepcopy(model), min_region_size=1)
    with torch.no_grad():
        ours(x)
        for run in range(2):
            torch.manual_seed(run)
            found = ours(x)
            torch.manual_seed(run)
            for result, expected in zip(found, model(x), strict=True):
                torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_torchs_own_functions_of_weights_run_once(compile_model, agree, regions):
    model = Weighted(lambda w: torch.special.erfinv(w.clamp(-0.9, 0.9)).flip(0)).eval()
    x = torch.randn(2, 3, 8, 8)
    agree(compile_model(model, min_region_size=1), model, x)
    assert len(regions()) == 1
