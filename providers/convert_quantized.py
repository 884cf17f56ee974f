"""Quantized convolutions and linear layers of an ONNX model as ops of ours, which take and give unsigned bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from softneuro.providers.quantized_graph import (
    FORMS,
    Grid,
    QuantizedGraph,
    Weight,
    attributes,
    has_text_names,
    is_quantized,
)
from softneuro.providers.unsigned_bytes import make_unsigned

_DEEPEST = 2**16 - 2**7  # products whose sum 32 bits hold
_GEOMETRY = ("strides", "pads", "dilations", "group")


class _Unit(NamedTuple):
    """What becomes one node: its parts by their places in the graph, from the layer to what makes the output."""

    parts: list[int]
    x: str
    x_grid: Grid
    y_grid: Grid
    weight: Weight
    bias: Any = None  # reals
    activation: str = ""


def _outputs_first(layer: Any) -> bool:
    return "Conv" in layer.op_type or bool(attributes(layer).get("transB", 0))


class Converter:
    """One graph on its way."""

    def __init__(self, model: Any, domain: str, routines: dict[str, str]) -> None:
        self.domain = domain
        self.routines = routines
        self.graph = QuantizedGraph(model)

    def convert(self) -> dict[str, str]:
        """As the function of that name."""
        make_unsigned(self.graph)
        made: dict[int, Any] = {}
        gone: set[int] = set()
        layers = {}
        for at in range(len(self.graph.nodes)):
            unit = self._find(at)
            node = self._node(unit) if unit is not None else None
            if unit is None or node is None:
                continue
            made[unit.parts[-1]] = node
            gone.update(unit.parts[:-1])
            layers[node.name] = self._routine(node.name)
        self.graph.set_nodes([made.get(at, node) for at, node in enumerate(self.graph.nodes) if at not in gone])
        if layers:
            self.graph.drop_idle()
            self._convert_borders()
        self.graph.write()
        return layers

    def _routine(self, name: str) -> str:
        """The unit's routine if it works on bytes: what a plan has in floats, or makes so, the op does with bytes."""
        found = self.routines.get(name, "")
        return re.sub(r"->cpu:float32:\w+", "", found) if "/cpu:qint8:" in found else ""

    def _node(self, unit: _Unit) -> Any:
        """None for one that has to stay."""
        import numpy as np
        from onnx import helper

        layer = self.graph.nodes[unit.parts[0]]
        given, rank, is_conv = attributes(layer), unit.weight.values.ndim, "Conv" in layer.op_type
        if is_conv:
            stays = (
                rank not in (3, 4) or given.get("auto_pad", b"NOTSET") != b"NOTSET" or min(given.get("pads", [0])) < 0
            )
        else:
            stays = rank != 2 or given.get("alpha", 1.0) != 1 or given.get("beta", 1.0) != 1 or given.get("transA", 0)
        turned = not _outputs_first(layer)
        outputs = unit.weight.values.shape[1 if turned and rank > 1 else 0]
        if stays or unit.weight.values.size // max(outputs, 1) > _DEEPEST:
            return None
        inputs = [unit.x, self.graph.byte_weight(unit.weight, turned), self.graph.constant(unit.weight.scales)]
        if unit.bias is not None:
            if unit.bias.size not in (1, outputs) or (unit.bias.ndim > 1 and unit.bias.shape[-1] != unit.bias.size):
                return None
            offsets = np.broadcast_to(unit.bias.ravel(), outputs).astype(np.float32)
            inputs.append(self.graph.constant(offsets))
        name = layer.name or layer.output[0]
        named: dict[str, Any] = {"x_scale": unit.x_grid.scale, "x_zero_point": unit.x_grid.zero}
        named |= {"y_scale": unit.y_grid.scale, "y_zero_point": unit.y_grid.zero}
        named |= {key: given[key] for key in _GEOMETRY if is_conv and key in given}
        named |= {"activation": unit.activation} if unit.activation else {}
        return helper.make_node(
            "QConv" if is_conv else "QLinear",
            inputs,
            self.graph.nodes[unit.parts[-1]].output[:],
            name=name,
            domain=self.domain,
            routine=self._routine(name),
            **named,
        )

    def _find(self, at: int) -> _Unit | None:
        node = self.graph.nodes[at]
        form = FORMS.get((node.domain, node.op_type))
        if form is not None:
            return self._find_operator(at, node, *form)
        if node.domain or node.op_type not in {"Conv", "MatMul", "Gemm"} or len(node.input) < 2:
            return None
        return self._find_between(at, node)

    def _find_operator(self, at: int, node: Any, bias: int, scale: int) -> _Unit | None:
        """Finds the unit of an op that carries all scales itself."""
        x, y = self.graph.grid(node, 0, 1, 2), self.graph.grid(node, None, scale, scale + 1)
        weight = self.graph.weight(node.input[3:6], 0 if _outputs_first(node) else 1)
        if x is None or y is None or weight is None:
            return None
        offsets = None
        if 0 <= bias < len(node.input) and node.input[bias]:
            integers = self.graph.array(node.input[bias])
            if integers is None:
                return None
            offsets = integers * (x.scale * weight.scales.astype(float))
        return _Unit([at], node.input[0], x, y, weight, offsets)

    def _find_between(self, at: int, node: Any) -> _Unit | None:
        """Finds the unit of an op on reals that have been bytes, whose result becomes bytes."""
        graph = self.graph
        x_maker, w_maker = graph.maker(node.input[0]), graph.maker(node.input[1])
        if not (graph.is_op(x_maker, "DequantizeLinear") and graph.is_op(w_maker, "DequantizeLinear")):
            return None
        parts, activation = [at], ""
        last = graph.sole_reader(node.output[0])
        clamp = None
        if last is not None and graph.nodes[last].op_type in {"Relu", "Clip"} and not graph.nodes[last].domain:
            clamp = graph.nodes[last]
            parts.append(last)
            last = graph.sole_reader(clamp.output[0])
        if last is None or not graph.is_op(graph.nodes[last], "QuantizeLinear"):
            return None
        parts.append(last)
        x, y = graph.grid(x_maker, 0, 1, 2), graph.grid(graph.nodes[last], None, 1, 2)
        weight = graph.weight(w_maker.input, 0 if _outputs_first(node) else 1, attributes(w_maker).get("axis", 1))
        if x is None or y is None or weight is None or attributes(w_maker).get("block_size", 0):
            return None
        if clamp is not None and not self._is_in_range(clamp, y):
            if clamp.op_type != "Relu":
                return None
            activation = "relu"
        offsets = None
        if len(node.input) > 2 and node.input[2]:
            offsets = graph.reals(node.input[2])
            if offsets is None:
                return None
        return _Unit(parts, x_maker.input[0], x, y, weight, offsets, activation)

    def _is_in_range(self, clamp: Any, y: Grid) -> bool:
        """Whether the bytes' own range does what the op does."""
        bounds = [0.0, math.inf]
        if clamp.op_type == "Clip":
            bounds = [-math.inf, math.inf]
            for i, name in enumerate(clamp.input[1:]):
                value = self.graph.array(name) if name else None
                if name and value is None:
                    return False
                bounds[i] = float(value) if value is not None else bounds[i]
            if attributes(clamp):  # of a version before bounds were inputs
                return False
        return y.step(bounds[0]) <= 0 and y.step(bounds[1]) >= 255

    def _convert_borders(self) -> None:
        """What quantizes and dequantizes, unless the host computes it together with an op between."""
        graph = self.graph
        for at, node in enumerate(graph.nodes):
            if graph.is_op(node, "QuantizeLinear"):
                source = graph.maker(node.input[0])
                if source is not None and self._is_host_unit(source):
                    continue
                self._make_border(at, "Quantize", graph.grid(node, None, 1, 2))
            elif graph.is_op(node, "DequantizeLinear"):
                if any(self._is_host_unit(graph.nodes[reader]) for reader in graph.readers[node.output[0]]):
                    continue
                self._make_border(at, "Dequantize", graph.grid(node, 0, 1, 2))

    def _make_border(self, at: int, op: str, grid: Grid | None) -> None:
        from onnx import helper

        node = self.graph.nodes[at]
        if grid is None or self.graph.array(node.input[0]) is not None:
            return
        named = {"scale": grid.scale, "zero_point": grid.zero}
        node.CopyFrom(helper.make_node(op, node.input[:1], node.output[:], name=node.name, domain=self.domain, **named))

    def _is_host_unit(self, node: Any) -> bool:
        """An op between what dequantizes and what quantizes, or a product of what is dequantized."""
        graph = self.graph
        if node.domain == self.domain or node.op_type in {"QuantizeLinear", "DequantizeLinear"}:
            return False
        sources = [source for name in node.input if (source := graph.maker(name)) is not None]
        if node.op_type in {"Relu", "Clip"}:  # and the op before it
            sources += [s for source in sources for name in source.input if (s := graph.maker(name)) is not None]
        if not any(graph.is_op(source, "DequantizeLinear") for source in sources):
            return False
        return node.op_type in {"MatMul", "Gemm"} or any(
            graph.is_op(reader, "QuantizeLinear") for reader in self._readers(node)
        )

    def _readers(self, node: Any) -> Iterator[Any]:
        graph = self.graph
        for output in node.output:
            for at in graph.readers[output]:
                yield graph.nodes[at]
                if graph.nodes[at].op_type in {"Relu", "Clip"}:
                    yield from (graph.nodes[next_at] for next_at in graph.readers[graph.nodes[at].output[0]])


def convert(model: Any, domain: str, routines: dict[str, str]) -> dict[str, str]:
    """Rewrites the graph. Routines of the new nodes that have one, by the names of the layers that they compute."""
    if not (is_quantized(model.graph) and has_text_names(model.graph)):
        return {}
    return Converter(model, domain, routines).convert()
