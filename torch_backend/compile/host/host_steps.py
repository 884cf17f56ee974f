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
from softneuro.torch_backend.compile.converters.registry import MAX_RANK
from softneuro.torch_backend.compile.ops.borders import TYPES
from softneuro.torch_backend.compile.ops.orders import axis_order, inverse
from softneuro.torch_backend.compile.ops.purity import is_random
from softneuro.torch_backend.compile.ops.reals import HALVES, REALS
from softneuro.torch_backend.compile.ops.strides import FREE_OF_STRIDES

aten = torch.ops.aten
_not_compiled: Callable[[Any], Any] = torch.compiler.disable
_LONG = 300  # characters that a step's text may have


def step_reason(node: Node, constants: Set[Node], values: Mapping[Node, Any] | None = None) -> str | None:
    """Why an op cannot be a step, or None: it has to be a function of its tensors, and of torch's own library.

    Other libraries may not check the values that they are given, which are of no meaning while a region is tuned.
    `values`, once shapes are known: the number, or the tensor without memory, that a node stands for.
    """
    if node.target is operator.getitem:
        source = node.args[0]
        return step_reason(source, constants, values) if isinstance(source, Node) else "it is not on a tensor"
    if not isinstance(node.target, OpOverload) or node.target.namespace != "aten":
        return "it is no op of torch's own library"
    if node.target._schema.is_mutable or node.target is aten.as_strided.default:
        return "it depends on where its tensors lie"
    if node.target is aten.view.dtype:
        return "it depends on the bits of its tensors"
    if is_random(node):
        return "it is random"
    known = values or {}
    results = known.get(node, node.meta.get("val"))
    if isinstance(results, tuple | list):
        read = {user.args[1] for user in node.users if user.target is operator.getitem}
        results = [result for index, result in enumerate(results) if index in read]
    # Constants never are the net's memory.
    inputs = [known.get(n, n.meta.get("val")) for n in node.all_input_nodes if n not in constants]
    for value in (results, *inputs):
        for result in _results(value):
            if reason := _number_reason(result) if isinstance(result, torch.SymInt | int) else _tensor_reason(result):
                return reason
    traced = [value for n in (node, *node.all_input_nodes) for value in _results(n.meta.get("val"))]
    devices = (value.device.type for value in traced if isinstance(value, torch.Tensor))
    return next((f"it is on {device}" for device in devices if device != "cpu"), None)


def _results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _number_reason(value: torch.SymInt | int) -> str | None:
    return "a number depends on values" if has_free_unbacked_symbols(value) else None


def _tensor_reason(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return "it is not on dense tensors alone"
    if value.dtype not in TYPES:
        return f"its dtype is {str(value.dtype).removeprefix('torch.')}"
    if value.dim() > MAX_RANK:
        return f"rank {value.dim()} is above {MAX_RANK}"
    if any(isinstance(size, int) and size == 0 for size in value.shape):
        return "it is on an empty tensor"
    return "a shape depends on values" if has_free_unbacked_symbols(value) else None


class HostStep:
    """Some ops that follow each other, as a net calls them: with arrays that are the net's memory.

    They run in the host's types: the net's reals, all float32, are rounded to halves where the host has those.
    Constant tensors belong to it and share a weight's memory, so that no change in place is ever missed.
    """

    def __init__(
        self, nodes: Sequence[Node], values: Mapping[Node, Any], constant: Callable[[Node], torch.Tensor | None]
    ) -> None:
        """`values`: what nodes are, at least those that are read; `constant`: the tensor that a node is."""
        inside = set(nodes)
        results = [n for n in nodes if isinstance(values[n], torch.Tensor) and not inside.issuperset(n.users)]
        read = dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside)
        tensors = [n for n in read if isinstance(values[n], torch.Tensor)]
        # Unrounded where they are computed from halves, until here.
        constants = {n: t.detach().to(values[n].dtype) for n in tensors if (t := constant(n)) is not None}
        # With the order in which the axes lie in the net's memory.
        self.inputs = {n: _order(values[n]) for n in tensors if n not in constants}
        self.outputs = {n: _order(values[n]) for n in results}
        self.promised = [
            (tuple(values[n].shape[i] for i in order), TYPES[_stored(values[n].dtype)])
            for n, order in self.outputs.items()
        ]
        self._constants = list(constants.values())
        # NumPy takes a tenth of the time that torch takes to permute.
        self._back = [_back(order) for order in (*self.inputs.values(), *self.outputs.values())]

        graph = Graph()
        copies = {n: values[n] for n in read if n not in tensors}
        copies |= {n: graph.placeholder(f"c{i}") for i, n in enumerate(constants)}
        copies |= {n: graph.placeholder(f"x{i}") for i, n in enumerate(self.inputs)}
        targets = {n: graph.placeholder(f"y{i}") for i, n in enumerate(self.outputs)}
        texts = [f"{t.dtype}{list(t.shape)}" for t in self._constants]
        for known, orders in ((copies, self.inputs), (targets, self.outputs)):
            texts += (f"{known[n]}:{values[n].dtype}{list(order)}" for n, order in orders.items())
        for n in self.inputs:
            if values[n].dtype in HALVES:
                copies[n] = graph.call_function(aten._to_copy.default, (copies[n],), {"dtype": values[n].dtype})
        directly = {n: target for n, target in targets.items() if values[n].dtype not in HALVES}
        written: set[Node] = set()
        for node in nodes:
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: copies[n])
            # A net's memory has others than the host's.
            op, places = FREE_OF_STRIDES.get(node.target, node.target), _places(node, directly)
            if places is not None:
                op, names = _out_variant(node.target)
                written.update(places)
                kwargs = {**kwargs, **{name: targets[n] for name, n in zip(names, places, strict=True)}}
            copies[node] = graph.call_function(op, args, kwargs)
            texts.append(f"{copies[node]}={op}{args}{kwargs}")
            if node in targets and node not in written:
                graph.call_function(give, (copies[node], targets[node], values[node].dtype))
            for n in places or ():
                graph.call_function(expect, (targets[n], list(values[n].shape), values[n].dtype))
        graph.output(None)
        self._module = GraphModule({}, graph)
        self._run = self._module.forward
        self.text = _shortened(" ".join(texts))

    @_not_compiled  # or a compiled program that calls the net would compile this
    def __call__(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Runs the ops. Arrays: the net's memory, dense, of the shapes and types that were promised."""
        arrays = zip(inputs + outputs, self._back, strict=True)
        tensors = [*self._constants, *(torch.from_numpy(a.transpose(back) if back else a) for a, back in arrays)]
        if not torch._C._is_any_autocast_enabled():
            self._run(*tensors)
            return
        with torch._C._DisableAutocast():  # what it changes is among the ops already
            self._run(*tensors)


def _stored(dtype: torch.dtype) -> torch.dtype:
    """The type of a blob within a net."""
    return torch.float32 if dtype in REALS else dtype


def _order(value: torch.Tensor) -> tuple[int, ...]:
    """Reals have the order of the host's memory: nets transpose no integers."""
    return axis_order(value.stride() if value.dtype in REALS else [0] * value.dim(), value.shape)


def _back(order: Sequence[int]) -> list[int] | None:
    """The permutation from the net's order of axes to the host's; None for none."""
    return None if list(order) == sorted(order) else inverse(order)


def give(result: torch.Tensor, target: torch.Tensor, dtype: torch.dtype) -> None:
    """Copies a result of the type that was promised to where the net wants it."""
    expect(result, target.shape, dtype)
    target.copy_(result)


def expect(result: torch.Tensor, shape: Sequence[int], dtype: torch.dtype) -> None:
    """Refuses a result that is not as promised. An op resizes what it is to write, if it can."""
    if (list(result.shape), result.dtype) != (list(shape), dtype):
        raise softneuro.Error(f"a step gave {list(result.shape)} of {result.dtype} where {list(shape)} of {dtype} was "
                              "promised")  # fmt: skip


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
