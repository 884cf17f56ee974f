"""From a region's op graph and concrete shapes to a core graph."""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node

import softneuro
from softneuro.torch_backend.compile.conversion.evaluation import Evaluation, memory_of
from softneuro.torch_backend.compile.conversion.quantized_weights import QuantizedWeight, find_groups, quantized_weight
from softneuro.torch_backend.compile.converters.registry import Call, find_converter
from softneuro.torch_backend.compile.host.host_steps import HostStep, step_reason
from softneuro.torch_backend.compile.ops.borders import TYPES, Border, output_schema
from softneuro.torch_backend.compile.ops.known_shapes import KnownShapes
from softneuro.torch_backend.compile.ops.names import layer_name
from softneuro.torch_backend.compile.ops.orders import inverse
from softneuro.torch_backend.compile.ops.reals import REALS, WHOLE
from softneuro.torch_backend.compile.ops.strides import true_value
from softneuro.torch_backend.compile.ops.walks import with_sources

log = logging.getLogger("softneuro.torch_backend")


@dataclass
class Lowered:
    """A core graph with what is needed to call it."""

    graph: softneuro.Graph
    watched: set[int] = field(default_factory=set)  # weights to compare whole at every call, by index
    # By output: the order of axes in which the net is to write it, outermost first, where that is not its schema's.
    orders: list[list[int]] = field(default_factory=list)


class Lowering:
    """Adds the layers of one region to a core graph, for one signature of shapes."""

    def __init__(
        self,
        module: GraphModule,
        weights: dict[Node, tuple[int, torch.Tensor]],
        constants: set[Node],
        steps: Sequence[Sequence[Node]] = (),
    ) -> None:
        self.result = Lowered(softneuro.Graph())
        self._module = module
        self._weights = weights  # by placeholder: index and tensor
        self._constants = constants
        self._steps = {node: nodes for nodes in steps for node in nodes}
        self._values: dict[Node, Any] = {}
        self._blobs: dict[Node, int | list[int]] = {}
        self._casts: dict[tuple[int, str], int] = {}  # by what is converted, and to which type
        self._whole: dict[Node, int] = {}  # constants in the host's type, where that is of no reals
        self._made: set[Node] = set()  # by converters: reals, whatever the host has
        #: the real value of a node that follows from weights alone, not rounded to halves on the way
        self.evaluate = Evaluation(weights)
        self._node: Node | None = None

    def run(
        self,
        inputs: Sequence[torch.Tensor],
        borders: Sequence[Border],
        sizes: Sequence[int],
        names: Sequence[str],
        shapes: KnownShapes | None = None,
    ) -> Lowered:
        """Lowers for tensors like these, which come so, and these values of the symbolic sizes.

        `shapes`: of the module's graph, which spares its ops a run without values.
        """
        graph = self.result.graph
        weights = [tensor for _, tensor in self._weights.values()]
        known = shapes.values(inputs, sizes, weights) if shapes is not None else None
        self._values = known if known is not None else self._propagated(inputs, sizes)
        self.evaluate.know_sizes(self._values)
        rim = iter(zip(borders, names, strict=True))
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                if node not in self._weights and isinstance(self._values[node], torch.Tensor):
                    border, name = next(rim)
                    self._blobs[node] = graph.input(name, border.shape, border.schema)
            elif node.op == "call_function" and node not in self._constants:
                self._convert(node)
        for node in self._module.graph.output_node().args[0]:
            self._node = node
            value, blob = self._values[node], self.value(node)
            order = list(node.meta.get("order") or range(value.dim()))
            schema, done = output_schema(value.dtype, order)
            if not done:
                blob = self._in_order(blob, order, value.dtype)
            self.result.orders.append([] if done else order)
            graph.output(blob, schema)
        return self.result

    def _propagated(self, inputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> dict[Node, Any]:
        """What each node stands for, by its ops, run on tensors without memory."""
        values: dict[Node, Any] = {}
        numbers, tensors = iter(sizes), iter(inputs)
        with FakeTensorMode(allow_non_fake_inputs=False) as fake, torch.no_grad():
            for node in self._module.graph.nodes:
                if node.op == "call_function":
                    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = true_value(node.target, args, node.target(*args, **kwargs))
                elif node in self._weights:
                    values[node] = fake.from_tensor(self._weights[node][1])
                elif node.op == "placeholder":
                    if isinstance(node.meta["val"], torch.Tensor):
                        like = next(tensors)
                        values[node] = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
                    else:
                        values[node] = int(next(numbers))
        return values

    def _in_order(self, blob: int, order: Sequence[int], dtype: torch.dtype) -> int:
        if dtype in REALS or dtype in WHOLE:
            return self.add("transpose", [blob], perm=list(order))
        shape = self.result.graph.shape(blob)

        def permute(inputs: list[Any], outputs: list[Any]) -> None:
            outputs[0][...] = inputs[0].transpose(order)

        promised = [(tuple(shape[axis] for axis in order), TYPES[dtype])]
        return self.result.graph.add_host("output", f"permute{list(order)}", permute, [blob], promised)[0]

    def _convert(self, node: Node) -> None:
        self._node = node
        if node in self._blobs:  # of an op that became a step after all
            return
        if step := self._steps.get(node):
            if node is step[-1]:
                self._blobs |= self.add_step(step, self._values, self.stored)
        elif node.target is operator.getitem:
            source = self._blobs[node.args[0]]
            self._blobs[node] = source[node.args[1]] if isinstance(source, list) else source
            self._made.update([node] if node.args[0] in self._made else [])
        else:
            try:
                call = Call(node, self._constants, self._values)
                found = find_converter(node.target)
                assert found is not None
                self._blobs[node] = self._as_the_host(node, found.convert(self, call))
                self._made.add(node)
            except MemoryError:
                raise
            except Exception as error:
                # Its shapes were not known when the region was made; what was added for it leads nowhere.
                self._leave(node, str(error) or type(error).__name__)

    def _as_the_host(self, node: Node, made: int | list[int]) -> int | list[int]:
        """What a converter has made, if it has the shapes that the host gives."""
        value = self._values[node]
        values = value if isinstance(value, tuple | list) else [value]
        for blob, expected in zip(made if isinstance(made, list) else [made], values, strict=False):
            if tuple(self.result.graph.shape(blob)) != tuple(expected.shape):
                raise softneuro.Error(f"{list(self.result.graph.shape(blob))} for the host's {list(expected.shape)}")
        return made

    def _leave(self, node: Node, reason: str) -> None:
        """Makes a step of an op that a converter has declined. Raises softneuro.Error if it cannot be one."""
        self._module.meta.setdefault("declined", {})[node] = reason
        hindrance = step_reason(node, self._constants, self._values)
        if any(n in self._made and not self._is_as_the_host(n) for n in node.all_input_nodes):
            hindrance = "what it reads is no tensor of the host's inside a region"
        if hindrance is not None:
            raise softneuro.Error(f"{layer_name(node)}: {reason}, and it cannot be a step: {hindrance}")
        log.debug("%s stays with the host as a step: %s", node.target, reason)
        items = [user for user in node.users if user.target is operator.getitem]
        self._values.update({item: self._values[node][item.args[1]] for item in items})
        self._blobs |= self.add_step([node, *items], self._values, self.stored)

    def _is_as_the_host(self, node: Node) -> bool:
        made, value = self._blobs[node], self._values[node]
        if isinstance(made, list):
            return True  # what takes one of them is asked about
        dtype = torch.float32 if value.dtype in REALS else value.dtype
        return bool(self.result.graph.dtype(made) == TYPES[dtype])

    def _permuted(self, blob: int, order: Sequence[int]) -> int:
        return blob if list(order) == sorted(order) else self.add("transpose", [blob], perm=list(order))

    # What converters use.

    def add_step(
        self, nodes: Sequence[Node], values: Mapping[Node, Any], stored: Callable[[Node], int]
    ) -> dict[Node, int]:
        """Adds ops of the host that follow each other; blobs by their results. `values`: what nodes stand for."""
        step = HostStep(nodes, values, lambda n: self.evaluate(n) if n in self._constants else None)
        if not step.outputs:
            return {}
        # In the order of the host's memory, which is likely to be what transposes around it are there for.
        inputs = [self._permuted(stored(node), order) for node, order in step.inputs.items()]
        add = functools.partial(self.result.graph.add_host, read_only=False, strided=True)
        blobs = add(layer_name(nodes[0]), step.text, step, inputs, step.promised)
        results = zip(blobs, step.outputs.items(), strict=True)
        return {node: self._permuted(blob, inverse(order)) for blob, (node, order) in results}

    def add(
        self,
        kind: str,
        inputs: list[int],
        weights: Mapping[str, torch.Tensor | QuantizedWeight] | None = None,
        **attributes: Any,
    ) -> int:
        """Adds a layer named after the current op and returns its blob."""
        assert self._node is not None
        given = {role: memory_of(value) for role, value in (weights or {}).items()}
        return self.result.graph.add(kind, inputs, name=layer_name(self._node), weights=given, **attributes)

    def blob(self, node: Node) -> int:
        """The blob of a tensor's values as reals; of a weight, a constant blob."""
        if node in self._constants and node not in self._blobs:
            self._blobs[node] = self.add("constant", [], {"value": self.constant(node)})
        return self.as_type(self.stored(node), torch.float32)

    def value(self, node: Node) -> int:
        """The blob of a tensor as the host has it, or as the real that it is inside a region."""
        if node not in self._constants:
            return self.stored(node)
        tensor = self.evaluate(node)
        if tensor.dtype not in WHOLE:
            return self.blob(node)
        if node not in self._whole:
            self._whole[node] = self.add("constant", [], {"value": tensor.detach()})
        return self._whole[node]

    def is_whole(self, *operands: Any) -> bool:
        """Whether any of these is a tensor of integers or booleans, and none is a real for one."""
        blobs = [n for n in operands if isinstance(n, Node) and n not in self._constants]
        return bool(blobs) and all(self.result.graph.dtype(self.stored(n)) != "float32" for n in blobs)

    def as_type(self, blob: int, dtype: torch.dtype) -> int:
        """The same values as integers or booleans of a type, or as reals."""
        if self.result.graph.dtype(blob) == (name := TYPES[dtype]):
            return blob
        if (blob, name) not in self._casts:
            to: dict[str, Any] = {} if dtype == torch.float32 else {"to": name}
            self._casts[blob, name] = self.add("cast", [blob], **to)
        return self._casts[blob, name]

    def operand(self, value: Any, dtype: torch.dtype) -> int:
        """A tensor or a number as a blob of a type."""
        if isinstance(value, Node):
            return self.as_type(self.value(value), dtype)
        return self.operand_of(torch.tensor(value, dtype=dtype))

    def operand_of(self, tensor: torch.Tensor) -> int:
        """A constant blob in the tensor's own type."""
        return self.add("constant", [], {"value": tensor})

    def stored(self, node: Node) -> int:
        """The blob of a tensor that is no weight, integers as the host has them."""
        blob = self._blobs[node]
        assert isinstance(blob, int)
        return blob

    def binary(self, function: str, blob: int, other: Any, constant: bool, reverse: bool = False) -> int:
        """The layer blob (function) other, or the reverse; other is a node or a number."""
        order: dict[str, Any] = {"reversed": 1} if reverse else {}
        if constant:
            value = self.constant(other)
            if value.dim() == 0:
                return self.add("binary", [blob], function=function, scalar=float(value), **order)
            return self.add("binary", [blob], {"other": value}, function=function, **order)
        if isinstance(other, Node):
            blobs = [self.blob(other), blob] if reverse else [blob, self.blob(other)]
            return self.add("binary", blobs, function=function)
        return self.add("binary", [blob], function=function, scalar=float(other), **order)

    def weights(self, **nodes: Node | None) -> dict[str, torch.Tensor]:
        """Values of weights by role, without those that are None."""
        return {role: self.constant(node) for role, node in nodes.items() if node is not None}

    def weight(self, node: Node) -> torch.Tensor | QuantizedWeight:
        """A constant for a layer that multiplies by it: in the host's bytes where that can be."""
        return quantized_weight(node, self.evaluate) or self.constant(node)

    def blocks(self, node: Node, turned: bool) -> tuple[dict[str, torch.Tensor], int] | None:
        """What a constant [K, C], or its transpose, is made of for `linear_blocks`, and its bits; None if it is not."""
        groups = find_groups(node, turned)
        return groups.weights(self.evaluate) if groups is not None else None

    def constant(self, node: Node) -> torch.Tensor:
        """Value of a constant node, in a weight's own memory and type where that can be; need not be contiguous."""
        value: torch.Tensor = self.evaluate(node).detach()
        if value.device.type != "cpu":
            raise softneuro.Error(f"{layer_name(node)}: weight on {value.device.type}")
        return value if value.dtype in REALS else value.to(torch.float32)

    def watch(self, *nodes: Node) -> None:
        """Marks weights that the host may change unnoticed: they are compared whole at every call."""
        for node in nodes:
            read = with_sources([node], lambda n: () if n in self._weights else n.all_input_nodes)
            self.result.watched.update(self._weights[n][0] for n in read if n in self._weights)
