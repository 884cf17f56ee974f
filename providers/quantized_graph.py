"""An ONNX graph with what its tensors of bytes mean: what `convert` asks of quantized models."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

FLOAT, UINT8, INT8 = 1, 2, 3  # of onnx.TensorProto
_OVERRIDABLE = 4  # the version of the format from which on an input's initializer is but its default
# Ops that carry their operands' scales: places of the bias, -1 for none, and of the result's scale.
FORMS = {
    ("", "QLinearConv"): (8, 6),
    ("", "QLinearMatMul"): (-1, 6),
    ("com.microsoft", "QGemm"): (6, 7),
}


# Further ones of Microsoft's domain: how many operands they have, and the place of the result's scale.
_MORE = {
    "QLinearAdd": (2, 6),
    "QLinearMul": (2, 6),
    "QLinearAveragePool": (1, 3),
    "QLinearGlobalAveragePool": (1, 3),
    "QLinearSigmoid": (1, 3),
    "QLinearLeakyRelu": (1, 3),
    "QLinearSoftmax": (1, 3),
}
# Ops that pass bytes on, whatever these mean.
_MOVES = {"Concat", "Flatten", "Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}


def constants_of(model: Any) -> dict[str, Any]:
    """By name: initializers that callers may not override."""
    given = {info.name for info in model.graph.input} if model.ir_version >= _OVERRIDABLE else set()
    return {tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in given}


class Grid(NamedTuple):
    """The steps that a tensor's bytes count in."""

    scale: float
    zero: int

    def step(self, value: float) -> float:
        """The integer that a real becomes, before it is clamped."""
        return value if math.isinf(value) else round(value / self.scale) + self.zero


class Weight(NamedTuple):
    """Constant bytes around zero: `name` is that of the constant, if it is as they are."""

    values: Any
    scales: Any
    name: str


def attributes(node: Any) -> dict[str, Any]:
    """By name."""
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def byte_tensors(node: Any) -> list[tuple[str, int | None]]:
    """A node's tensors that may be bytes, with the places of their zero points among its inputs, None for moves."""
    given, out = node.input, node.output[0]
    if node.op_type == "QuantizeLinear":
        return [(out, 2)]
    if node.op_type == "DequantizeLinear":
        return [(given[0], 2)]
    if not node.domain and node.op_type in _MOVES:
        moved = given if node.op_type == "Concat" else given[:1]
        return [(name, None) for name in (*moved, out)]
    if node.op_type == "QLinearConcat":
        return [(given[i], i + 2) for i in range(2, len(given), 3)] + [(out, 1)]
    if (node.domain, node.op_type) in FORMS:
        operands, scale = 2, FORMS[node.domain, node.op_type][1]
    elif node.op_type in _MORE:
        operands, scale = _MORE[node.op_type]
    else:
        return []
    return [(given[3 * i], 3 * i + 2) for i in range(operands)] + [(out, scale + 1)]


def is_quantized(graph: Any) -> bool:
    """Whether any node is of those that are looked at."""
    return any(node.op_type == "DequantizeLinear" or (node.domain, node.op_type) in FORMS for node in graph.node)


def has_text_names(graph: Any) -> bool:
    """Protobuf gives a name that is not UTF-8 as bytes, and takes it from nobody."""
    return all(isinstance(name, str) for node in graph.node for name in (node.name, *node.input, *node.output))


def _read_in_bodies(graph: Any) -> Iterable[str]:
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from (name for inner in body.node for name in inner.input)
                yield from _read_in_bodies(body)


class QuantizedGraph:
    """Nodes, whose links are kept, and constants of a graph of protobuf's, which `write` changes."""

    def __init__(self, model: Any) -> None:
        graph = model.graph
        self.proto = graph
        self._constants = constants_of(model)
        self._kinds = self._find_kinds(graph)
        # Names that others than nodes read or write.
        self._fixed = {info.name for info in (*graph.input, *graph.output)} | set(_read_in_bodies(graph))
        self._turned: dict[str, str] = {}
        self._moved: set[str] = set()
        self._taken = {name for node in graph.node for name in (*node.input, *node.output)} | self._fixed
        self._taken.update(tensor.name for tensor in graph.initializer)
        self.set_nodes(list(graph.node))

    def _find_kinds(self, graph: Any) -> dict[str, int]:
        """Element types, as far as the model or the ops around tell them."""
        kinds = {
            info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.value_info, *graph.output)
        }
        for node in graph.node:
            for name, zero in byte_tensors(node):
                if zero is None:
                    kinds.setdefault(name, kinds.get(node.input[0], 0))
                elif len(node.input) > zero and node.input[zero] in self._constants:
                    kinds.setdefault(name, self._constants[node.input[zero]].data_type)
                elif node.op_type == "QuantizeLinear":
                    kinds.setdefault(name, attributes(node).get("output_dtype", 0) or UINT8)
        return kinds

    def set_nodes(self, nodes: list[Any]) -> None:
        """Other nodes, in an order in which they may run."""
        self.nodes = nodes
        self._makers = {name: node for node in nodes for name in node.output if name}
        self.readers: dict[str, list[int]] = defaultdict(list)
        for at, node in enumerate(nodes):
            for name in filter(None, node.input):  # one that is left out is no value
                self.readers[name].append(at)

    def drop_idle(self) -> None:
        """What quantizes and dequantizes for nobody."""
        idle = True
        while idle:
            kept = [n for n in self.nodes if not n.op_type.endswith("uantizeLinear") or self._is_read(n.output[0])]
            idle = len(kept) < len(self.nodes)
            self.set_nodes(kept)

    def write(self) -> None:
        """Into the model."""
        nodes = [type(node).FromString(node.SerializeToString()) for node in self.nodes]
        del self.proto.node[:]
        self.proto.node.extend(nodes)
        infos = [info for info in self.proto.value_info if info.name in self._makers]
        for info in infos:
            if info.name in self._moved:
                info.type.tensor_type.elem_type = UINT8
        del self.proto.value_info[:]
        self.proto.value_info.extend(infos)

    def is_fixed(self, name: str) -> bool:
        """Whether others than nodes read or write it."""
        return name in self._fixed

    def _is_read(self, name: str) -> bool:
        return bool(self.readers[name]) or name in self._fixed

    @staticmethod
    def is_op(node: Any, op: str) -> bool:
        """Whether there is a node and it is an op that ONNX and Microsoft's domain both have."""
        return node is not None and node.op_type == op and node.domain in {"", "com.microsoft"}

    def maker(self, name: str) -> Any:
        """The node that makes a value, or None."""
        return self._makers.get(name)

    def sole_reader(self, name: str) -> int | None:
        """The place of the node that alone reads a value."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self._fixed else None

    def array(self, name: str) -> Any:
        """A constant's values; None for anything else."""
        import onnx

        return onnx.numpy_helper.to_array(self._constants[name]) if name in self._constants else None

    def reals(self, name: str) -> Any:
        """A constant's, or those that integers of one stand for; None of anything else."""
        maker = self.maker(name)
        if not self.is_op(maker, "DequantizeLinear"):
            values = self.array(name)
            return values if values is not None and values.dtype == "float32" else None
        integers, scales, *zeros = [self.array(given) for given in maker.input if given]
        if integers is None or integers.ndim > 1 or scales is None or any(zero is None or zero.any() for zero in zeros):
            return None
        return integers * scales.astype(float)

    def kind(self, name: str) -> int:
        """Element type of what is no constant, 0 if it is not known."""
        return self._kinds.get(name, 0) if name not in self._constants else 0

    def grid(self, node: Any, tensor: int | None, scale: int, zero: int, kind: int = UINT8) -> Grid | None:
        """What a node takes an input's bytes for, or, with None, its output's. None unless it is one constant scale."""
        name = node.output[0] if tensor is None else node.input[tensor]
        if self.kind(name) != kind or len(node.input) <= scale:
            return None
        factor = self.array(node.input[scale])
        named = attributes(node)
        if (
            factor is None
            or factor.dtype != "float32"
            or factor.size != 1
            or named.get("precision", FLOAT) not in (0, 1)
        ):
            return None
        if not (math.isfinite(factor.item()) and factor.item() > 0) or named.get("output_dtype", kind) not in (
            0,
            FLOAT,
            kind,
        ):
            return None
        if len(node.input) <= zero or not node.input[zero]:
            return Grid(factor.item(), 0)
        offset = self.array(node.input[zero])
        return Grid(factor.item(), int(offset.item())) if offset is not None and offset.size == 1 else None

    def weight(self, inputs: Any, axis: int, given_axis: int | None = None) -> Weight | None:
        """A constant with its scale and its zero point, one or one for each index of an axis; None if it is no such."""
        import numpy as np

        arrays = [self.array(name) for name in inputs if name]
        if len(arrays) < 2 or any(array is None for array in arrays):
            return None
        values, scales, *zeros = arrays
        zero = zeros[0] if zeros else np.zeros((), values.dtype)
        if values.dtype not in ("int8", "uint8") or scales.dtype != "float32" or values.ndim <= axis:
            return None
        if np.any(zero != (128 if values.dtype == "uint8" else 0)):
            return None
        if scales.size > 1:
            by_axis = given_axis is None or given_axis % values.ndim == axis
            if not by_axis or scales.size != values.shape[axis] or scales.shape[-1] != scales.size:
                return None
        if not np.all(np.isfinite(scales) & (scales > 0)):
            return None
        if values.dtype == "uint8":
            return Weight((values ^ np.uint8(128)).view(np.int8), scales.ravel(), "")
        return Weight(values, scales.ravel(), inputs[0])

    def byte_weight(self, weight: Weight, turned: bool) -> str:
        """The name of a constant of the bytes, outputs first."""
        if weight.name and not turned:
            return weight.name
        if weight.name not in self._turned:
            self._turned[weight.name] = self.constant(weight.values.T.copy() if turned else weight.values, weight.name)
        return self._turned[weight.name] if weight.name else self._turned.pop("")

    def constant(self, values: Any, about: str = "constant") -> str:
        """The name of a new constant."""
        import onnx

        name, count = f"{about or 'constant'} of com.softneuro", 0
        while name in self._taken:
            count += 1
            name = f"{about or 'constant'} of com.softneuro {count}"
        self._taken.add(name)
        self._constants[name] = onnx.numpy_helper.from_array(values, name)
        self.proto.initializer.append(self._constants[name])
        return name

    def make_unsigned(self, name: str) -> None:
        """Notes that a tensor of signed bytes has become one of unsigned ones."""
        self._kinds[name] = UINT8
        self._moved.add(name)
