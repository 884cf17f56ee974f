"""What expressions say of each tensor is what running the ops says."""

import contextlib

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softneuro.torch_backend.compile.conversion.lowering import Lowering
from softneuro.torch_backend.compile.ops.known_shapes import KnownShapes
from tests.torch.odd_ops import ODD, Odd
from tests.torch.straight import Every, Straight
from tests.torch.test_converters import FUNCTIONS, GROUPS, MODULES, image


def _facts(value):
    if isinstance(value, torch.Tensor):
        axes = [(size, stride if size != 1 else 0) for size, stride in zip(value.shape, value.stride(), strict=True)]
        return value.dtype, axes
    return [_facts(item) for item in value] if isinstance(value, tuple | list) else value


@pytest.fixture
def lowered(monkeypatch):
    """By call of Lowering.run: whether expressions were used. Checks them against the ops."""
    known = []
    run, values = Lowering.run, KnownShapes.values

    def checked(self, inputs, borders, sizes, names, shapes=None):
        found = shapes and values(shapes, inputs, sizes, [tensor for _, tensor in self._weights.values()])
        known.append(found is not None)
        if found is not None:
            run_ones = self._propagated(inputs, sizes)
            assert {n: _facts(found[n]) for n in run_ones} == {n: _facts(v) for n, v in run_ones.items()}
        return run(self, inputs, borders, sizes, names, shapes)

    monkeypatch.setattr(Lowering, "run", checked)
    return known


def longer(x):
    return torch.cat([x, x, x])


def takes_any_batch(function, x):
    """Others are functions for this many alone."""
    with contextlib.suppress(RuntimeError):
        return function(longer(x)) is not None
    return False


CASES = {**{name: (function, image()) for name, function in FUNCTIONS.items()}, **MODULES}
FIXED = [name for name, (function, x) in CASES.items() if not takes_any_batch(function, x)]


@pytest.mark.parametrize("group", [*GROUPS, "modules"])
def test_converters(group, all_agree, lowered):
    names = MODULES if group == "modules" else GROUPS[group]
    every = Every({name: CASES[name] for name in names if name not in FIXED})
    compiled = Straight(every, dynamic=True, min_region_size=1)
    for inputs in (every.inputs, [longer(x) for x in every.inputs]):
        all_agree(compiled, every, inputs, steps=True)
    assert set(lowered) == {True}


def test_converters_of_one_batch(all_agree, lowered):
    every = Every({name: CASES[name] for name in FIXED})
    all_agree(Straight(every, dynamic=True, min_region_size=1), every)
    assert set(lowered) == {True}
    assert len(FIXED) < 6


@pytest.mark.parametrize("name", ["conv", "cat"])
def test_through_dynamo(name, compile_model, agree, lowered):
    function, x = CASES[name]
    compiled = compile_model(lambda x: function(x * 1.5) + 1, dynamic=True, min_region_size=1)
    for given in (x, longer(x)):
        agree(compiled, lambda x: function(x * 1.5) + 1, given)
    assert set(lowered) == {True}


def test_steps(all_agree, lowered):
    every = Every({name: (Odd(odd).eval(), torch.randn(2, 3, 12, 16)) for name, odd in ODD.items()})
    all_agree(Straight(every, dynamic=True), every, steps=True)
    assert set(lowered) == {True}


class Sizes(nn.Module):
    """Sizes of many kinds: of two inputs, halved, summed, cut, and as numbers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, 2, 1)

    def forward(self, x, y):
        x, y = self.conv(x).relu(), self.conv(y)[:, :, :, : x.shape[3] // 3]
        rows = torch.cat([x.flatten(2), y.flatten(2)], 2)
        pooled = F.max_pool2d(x, 3, 2, ceil_mode=True)
        wider = F.interpolate(pooled, scale_factor=2.0, mode="nearest")[:, 1:, 2:]
        return rows.softmax(-1) * x.shape[2] + y.shape[3] / 7, wider, x.transpose(1, 3)[::2] * 2


SHAPES = [(1, 17, 30, 19, 28), (3, 24, 24, 31, 33), (2, 40, 21, 24, 50)]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dynamic", [True, False])
def test_many_kinds_of_sizes(layout, dynamic, compile_model, agree, lowered):
    model = Sizes().eval()
    compiled = compile_model(model, dynamic=dynamic)
    for n, h, w, a, b in SHAPES:
        given = (torch.randn(n, 3, h, w).to(memory_format=layout), torch.randn(n, 3, a, b).to(memory_format=layout))
        agree(compiled, model, *given)
    assert set(lowered) == {True}


def _graph(*sizes):
    """An op on a tensor of these sizes, of whose result nothing is known yet."""
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = torch.empty(1, device="meta").expand(sizes)
    result = graph.call_function(torch.ops.aten.relu.default, (node,))
    graph.output((result,))
    return graph, node, result


def test_a_graph_without_shapes():
    graph, _, _ = _graph(3)
    with pytest.raises(ValueError, match="relu_default has been given no shape"):
        KnownShapes(graph, [])


def test_a_symbol_that_no_input_shows():
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    hidden = ShapeEnv().create_unbacked_symint()
    graph, _, result = _graph(3)
    result.meta["val"] = hidden
    with pytest.raises(ValueError, match="no input shows all symbols of u0"):
        KnownShapes(graph, [])


@pytest.mark.parametrize(
    "given",
    [torch.zeros(4, 6), torch.zeros(6, 4, dtype=torch.float16), torch.zeros(4, 6).t(), torch.zeros(6, 8)[:, ::2]],
    ids=["shape", "type", "strides", "gaps"],
)
def test_tensors_unlike_those_traced(given):
    graph, node, result = _graph(6, 4)
    node.meta["val"] = result.meta["val"] = torch.empty(6, 4, device="meta")
    shapes = KnownShapes(graph, [])
    assert shapes.values([torch.zeros(6, 4)], [], []) is not None
    assert shapes.values([given], [], []) is None


def test_sizes_that_ops_do_not_take(compile_model, lowered):
    """They raise what the host raises."""
    model = nn.Sequential(nn.Conv2d(3, 4, 5), nn.ReLU()).eval()
    compiled = compile_model(model, dynamic=True)
    compiled(torch.randn(2, 3, 9, 8))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        compiled(torch.randn(2, 3, 4, 8))
