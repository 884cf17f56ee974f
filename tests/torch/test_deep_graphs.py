"""Thousands of ops one after the other: nothing follows a graph by recursion."""

import pytest
import torch
from torch.fx import Graph, GraphModule

from softneuro.torch_backend import ops, registry
from softneuro.torch_backend.compile.converters.registry import aten
from softneuro.torch_backend.compile.host.apart import Apart, put_regions
from softneuro.torch_backend.compile.partitioning.partitioner import find_regions
from softneuro.torch_backend.options import parse
from tests.torch.conftest import OPTIONS

DEPTH = 3000
SIZE = 4


def _chain(graph, node, kind, value):
    """Ops that leave the shape as it is, without the cost of tracing them."""
    for index in range(DEPTH):
        op, *arguments = {
            "arithmetic": ((aten.mul.Tensor, 0.999), (aten.add.Tensor, 0.001)),
            "activations": ((aten.tanh.default,), (aten.mul.Tensor, 1.01)),
            "views": ((aten.permute.default, [1, 0]), (aten.t.default,)),
            "conversions": ((aten._to_copy.default,), (aten.detach.default,)),
            "steps": ((aten.cumprod.default, 0), (aten.mul.Tensor, 0.3)),
        }[kind][index % 2]
        options = {"dtype": torch.bfloat16 if index % 4 else torch.float32} if op is aten._to_copy.default else {}
        node = graph.call_function(op, (node, *arguments), options)
        node.meta["val"] = value = op(value, *arguments, **options)
    if value.dtype != torch.float32:
        node = graph.call_function(aten._to_copy.default, (node,), {"dtype": torch.float32})
        node.meta["val"] = value.float()
    return node


def _module(on, kind):
    """Two layers, and a chain on the first one's result or on the second one's weight."""
    graph = Graph()
    x, weight = graph.placeholder("x"), graph.placeholder("weight")
    values = [torch.empty(SIZE, SIZE, device="cpu") for _ in range(2)]
    values = [torch.rand_like(value) * 0.1 for value in values]
    for node, value in zip((x, weight), values, strict=True):
        node.meta["val"] = value

    def layer(node, by):
        node = graph.call_function(aten.mm.default, (node, by))
        node.meta["val"] = values[0]
        node = graph.call_function(aten.relu.default, (node,))
        node.meta["val"] = values[0]
        return node

    first = layer(x, weight)
    if on == "input":
        last = layer(_chain(graph, first, kind, values[0]), weight)
    else:
        last = layer(first, _chain(graph, weight, kind, values[1]))
    graph.output((last,))
    return GraphModule({}, graph), values


@pytest.mark.parametrize("kind", ["arithmetic", "activations", "views", "conversions", "steps"])
@pytest.mark.parametrize("on", ["weight", "input"])
def test_deep(on, kind):
    ops.load()
    options = parse(OPTIONS)
    module, values = _module(on, kind)
    expected = GraphModule({}, module.graph)(*values)
    weight = next(node for node in module.graph.nodes if node.name == "weight")
    partition = find_regions(module, {weight}, 1, join=True)
    runtimes = put_regions(partition, options, by_python=True)
    try:
        with torch.no_grad():
            torch.testing.assert_close(module(*values), expected, rtol=1e-2, atol=1e-2)
            assert all(shaped.host is None for runtime in runtimes for shaped in runtime.shaped.values())
            if runtimes[0].region.steps:
                apart = Apart(runtimes[0].region, options)
                torch.testing.assert_close(tuple(apart(*values)), expected, rtol=1e-2, atol=1e-2)
    finally:
        for runtime in runtimes:
            registry.remove(runtime.handle)
