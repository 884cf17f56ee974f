"""Ops that stay with the host as steps of a region's net, so that an odd one does not cut the region in two."""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols
from torch.fx.node import map_arg

import softneuro
from softneuro.torch_backend.converters.registry import MAX_RANK

# What a net hands to the host and takes from it.
DTYPES = {
    torch.float32: "float32",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}
aten = torch.ops.aten
# Where these are views depends on strides, and a net's memory has others than the host's.
_FREE_OF_STRIDES = {aten.view.default: aten.reshape.default, aten._unsafe_view.default: aten.reshape.default}
_LONG = 300  # characters that a step's text may have


def step_reason(node: Node, constants: Set[Node]) -> str | None:
    """Why an op cannot be a step, or None: it has to be a function of its tensors, and of torch's own library.

    Other libraries may not check the values that they are given, which are of no meaning while a region is tuned.
    """
    if node.target is operator.getitem:
        source = node.args[0]
        return step_reason(source, constants) if isinstance(source, Node) else "it is not on a tensor"
    if not isinstance(node.target, OpOverload) or node.target.namespace != "aten":
        return "it is no op of torch's own library"
    if node.target._schema.is_mutable or node.target is aten.as_strided.default:
        return "it depends on where its tensors lie"
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return "it is random"
    for value in [*_results(node.meta.get("val")), *(n.meta.get("val") for n in node.all_input_nodes)]:
        for tensor in _results(value):
            if not isinstance(tensor, torch.SymInt | int) and (reason := _tensor_reason(tensor)):
                return reason
    return None


def _results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _tensor_reason(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return "it is not on dense tensors alone"
    if value.device.type != "cpu":
        return f"it is on {value.device.type}"
    if value.dtype not in DTYPES:
        return f"its dtype is {str(value.dtype).removeprefix('torch.')}"
    if value.dim() > MAX_RANK:
        return f"rank {value.dim()} is above {MAX_RANK}"
    return "a shape depends on values" if has_free_unbacked_symbols(value) else None


class HostStep:
    """Some ops that follow each other, as a net calls them: with arrays that are the net's memory.

    Constant tensors belong to it and share a weight's memory, so that no change in place is ever missed.
    """

    def __init__(
        self, nodes: Sequence[Node], values: Mapping[Node, Any], constant: Callable[[Node], torch.Tensor | None]
    ) -> None:
        """`values`: numbers and fake tensors by node, at least of those read; `constant`: the tensor that a node is."""
        inside = set(nodes)
        self.outputs = [n for n in nodes if isinstance(values[n], torch.Tensor) and not inside.issuperset(n.users)]
        read = dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside)
        tensors = [n for n in read if isinstance(values[n], torch.Tensor)]
        constants = {n: tensor.detach() for n in tensors if (tensor := constant(n)) is not None}
        self.inputs = [n for n in tensors if n not in constants]
        self.promised = [(tuple(values[n].shape), DTYPES[values[n].dtype]) for n in self.outputs]
        self._constants = list(constants.values())

        graph = Graph()
        copies = {n: values[n] for n in read if n not in tensors}
        copies |= {n: graph.placeholder(f"c{i}") for i, n in enumerate(constants)}
        copies |= {n: graph.placeholder(f"x{i}") for i, n in enumerate(self.inputs)}
        targets = {n: graph.placeholder(f"y{i}") for i, n in enumerate(self.outputs)}
        written: set[Node] = set()
        texts = [f"{t.dtype}{list(t.shape)}" for t in self._constants]
        for node in nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: copies[n])
            op, places = _FREE_OF_STRIDES.get(node.target, node.target), _places(node, targets)
            if places is not None:
                op, names = _out_variant(node.target)
                written.update(places)
                kwargs = {**kwargs, **{name: targets[n] for name, n in zip(names, places, strict=True)}}
            copies[node] = graph.call_function(op, args, kwargs)
            texts.append(f"{copies[node]}={op}{args}{kwargs}")
            if node in targets and node not in written:
                graph.call_function(give, (copies[node], targets[node]))
        graph.output(None)
        self._module = GraphModule({}, graph)
        self._run = self._module.forward
        self.text = _shortened(" ".join(texts))

    def __call__(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Runs the ops. Arrays: the net's memory, dense, of the shapes and types that were promised."""
        tensors = [*self._constants, *map(torch.from_numpy, inputs), *map(torch.from_numpy, outputs)]
        if not torch._C._is_any_autocast_enabled():
            self._run(*tensors)
            return
        with torch._C._DisableAutocast():  # what it changes is among the ops already
            self._run(*tensors)


def give(result: torch.Tensor, target: torch.Tensor) -> None:
    """Copies a result to where the net wants it."""
    if (result.shape, result.dtype) != (target.shape, target.dtype):
        raise softneuro.Error(f"a step gave {list(result.shape)} of {result.dtype} where {list(target.shape)} of "
                              f"{target.dtype} was promised")  # fmt: skip
    target.copy_(result)


def _places(node: Node, targets: Mapping[Node, Any]) -> list[Node] | None:
    """The node's results in order, if all of them are wanted and the op can write them to where that is."""
    if not isinstance(node.target, OpOverload) or not (names := _out_variant(node.target)[1]):
        return None
    if node in targets:
        return [node]
    items = {user.args[1]: user for user in node.users if user.target is operator.getitem and user in targets}
    return [items[i] for i in range(len(names))] if len(items) == len(names) else None


@functools.cache
def _out_variant(op: OpOverload) -> tuple[OpOverload, list[str]]:
    """The overload that takes its results as arguments, and their names; none where there is no such overload."""

    def read(overload: OpOverload) -> list[tuple[str, str]]:
        return [(a.name, str(a.type)) for a in overload._schema.arguments if not a.is_out]

    for name in op.overloadpacket.overloads():
        other = getattr(op.overloadpacket, name)
        names = [a.name for a in other._schema.arguments if a.is_out]
        if names and len(names) == len(op._schema.returns) and read(other) == read(op):
            return other, names
    return op, []


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
