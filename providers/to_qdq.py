"""A choice of layers that compute with bytes as a portable model: QuantizeLinear and DequantizeLinear around them."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import softneuro
from softneuro.option_texts import option_texts
from softneuro.providers import report, sessions
from softneuro.providers.calibrate import source_of
from softneuro.providers.convert import save, simplify, text_of
from softneuro.providers.qdq_biases import Corrections
from softneuro.providers.quantized_graph import attributes, constants_of

_OLDEST = 13  # opset in which QuantizeLinear has an axis
# Scales that follow from values in the run become those of the ranges, and weights of blocks those of outputs.
_READS_BYTES = re.compile(r"(conv1d|conv2d|linear)/cpu:qint8:|dynamic_linear/|linear_blocks/")
_MOST = 127  # steps of a weight, to either side

Grid = tuple[float, int]


def to_qdq(
    model: Any,
    out: str | os.PathLike[str],
    ranges: str | os.PathLike[str],
    *,
    max_error: float | None = None,
    options: dict[str, Any] | None = None,
    sess_options: Any = None,
) -> list[str]:
    """Writes a float32 model with QuantizeLinear and DequantizeLinear by a file of ranges, which other runtimes load.

    Weights are signed bytes with a scale for each output, biases 32-bit integers, activations unsigned bytes.

    Args:
        model: path, the model's bytes, or an onnx.ModelProto; of opset 13 or later.
        out: file to write.
        ranges: as `calibrate` writes them.
        max_error: only layers that the plan for it computes with bytes here; None: all that have ranges.
        options: as of `session`, for that plan.
        sess_options: as of `session`; they have to fix open dimensions if there is to be a plan.

    Returns:
        Names of the convolutions and products that read bytes now.

    Raises:
        Error: the file has no ranges of this model, or nothing is to be quantized.
    """
    try:
        import onnx
    except ImportError as error:
        raise softneuro.Error("onnx is not installed: pip install 'softneuro[onnxruntime]'") from error
    table = softneuro._C.RangeTable.load(os.fspath(ranges))
    with tempfile.TemporaryDirectory() as folder:
        simple = Path(folder) / "model.onnx"
        simplify(source_of(model), simple)
        proto = onnx.load(str(simple))
        routines = None
        if max_error is not None:
            given = {**(options or {}), "calibration": ranges, "max_error": max_error}
            routines = _routines(str(simple), option_texts(given), sess_options)
    opset = next((entry.version for entry in proto.opset_import if not entry.domain), 0)
    if opset < _OLDEST:
        raise softneuro.Error(f"the model has opset {opset}: convert it to {_OLDEST} or later first")
    sections = _sections(proto, table)
    writer = _Writer(proto, _grids(proto, sections, os.fspath(ranges)), Corrections(sections), routines)
    done = writer.quantize()
    if not done:
        raise softneuro.Error("no layer is to compute with bytes: nothing is written")
    onnx.checker.check_model(proto)
    save(proto, Path(out))
    return done


def _routines(path: str, options: dict[str, str], sess_options: Any) -> dict[str, str]:
    """Descriptors of a plan's layers, by node."""
    events = [e for e in report.events(sessions.session(path, sess_options, **options)) if e["event"] == "prepared"]
    if not events:
        raise softneuro.Error("shapes are open, so there is no plan: fix them, or leave out max_error")
    return {layer["name"]: layer["descriptor"] for e in events if not e["host"] for layer in e.get("layers", [])}


def _tensors(proto: Any) -> set[str]:
    return {text_of(name) for node in proto.graph.node for name in (*node.input, *node.output)}


def _sections(proto: Any, table: Any) -> list[Any]:
    """Those that are of this model."""
    tensors = _tensors(proto)
    return [one for one in table.sections if 2 * sum(row.name in tensors for row in one.blobs) > len(one.blobs)]


def _grids(proto: Any, sections: list[Any], path: str) -> dict[str, Grid]:
    """Of the tensors whose ranges are known."""
    tensors = _tensors(proto)
    found: dict[str, Grid] = {}
    for row in (row for section in sections for row in section.blobs if row.name in tensors and row.count):
        grid = softneuro._C.grid_of(row.least, row.most)
        if found.setdefault(row.name, grid) != grid:
            raise softneuro.Error(f"{path} has two ranges of {row.name}: calibrate into a file of its own")
    if not found:
        raise softneuro.Error(f"{path} has no ranges of this model")
    return found


class _Writer:
    def __init__(
        self, proto: Any, grids: dict[str, Grid], corrections: Corrections, routines: dict[str, str] | None
    ) -> None:
        self._graph, self._grids, self._corrections, self._routines = proto.graph, grids, corrections, routines
        self._constants = constants_of(proto)
        self._results = {text_of(value.name) for value in proto.graph.output}
        self._behind: dict[str, list[Any]] = {}  # nodes by the tensor that they follow
        self._made: dict[str, str] = {}  # tensors as they are read from bytes
        self._whole: set[str] = set()  # those of them that all readers read so

    def quantize(self) -> list[str]:
        done = [self._name(node) for node in self._graph.node if self._quantize_node(node)]
        nodes = [node for value in self._graph.input for node in self._behind.get(text_of(value.name), [])]
        for node in self._graph.node:
            for place, name in enumerate(node.input):
                if text_of(name) in self._whole:
                    node.input[place] = self._made[text_of(name)]
            nodes += self._weights_of(node)
            for made in (node, *self._behind.get(f"sum behind {self._name(node)}", [])):
                nodes += [made, *(behind for name in made.output for behind in self._behind.get(text_of(name), []))]
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        used = {name for node in nodes for name in node.input} | self._results
        kept = [tensor for tensor in self._graph.initializer if tensor.name in used]
        if not any(a.HasField("g") for node in nodes for a in node.attribute):  # bodies may read any
            del self._graph.initializer[:]
            self._graph.initializer.extend(kept)
        return done

    @staticmethod
    def _name(node: Any) -> str:
        return text_of(node.name or node.output[0])

    def _weights_of(self, node: Any) -> list[Any]:
        return self._behind.get(f"weights of {self._name(node)}", [])

    def _quantize_node(self, node: Any) -> bool:
        axis = self._weight_axis(node)
        source = text_of(node.input[0]) if node.input else ""
        if axis is None or source not in self._grids or source in self._constants:
            return False
        routine = "" if self._routines is None else self._routines.get(self._name(node), "")
        if self._routines is not None and not _READS_BYTES.match(routine):
            return False
        weight = self._array(node.input[1])
        if not np.isfinite(weight).all():
            return False
        scales, shift = self._quantize_weight(node, weight, axis)
        result = self._result_of(node)
        if shift is not None:
            self._correct_bias(node, shift)
        if len(node.input) > 2 and node.input[2]:
            self._quantize_bias(node, scales)
        node.input[0] = self._from_bytes(source)
        if self._routines is None:
            self._whole.add(source)
        if result in self._grids and result not in self._results and "->" not in routine:
            self._from_bytes(result)
            self._whole.add(result)
        return True

    def _weight_axis(self, node: Any) -> int | None:
        """The axis of outputs in a node's weight; None where it is none that this can quantize."""
        if node.domain or node.op_type not in {"Conv", "Gemm", "MatMul"} or len(node.input) < 2:
            return None
        weight = self._constants.get(node.input[1])
        if weight is None or weight.data_type != 1:
            return None
        values = attributes(node)
        if node.op_type == "Conv":
            return 0
        if len(weight.dims) != 2 or values.get("transA", 0) or values.get("alpha", 1.0) != 1:
            return None
        return 0 if values.get("transB", 0) else 1

    def _result_of(self, node: Any) -> str:
        """The tensor whose range is that of a node's results: behind a sum or activation that it is computed with."""
        name = text_of(node.output[0])
        while name not in self._grids and name not in self._results:
            readers = [other for other in self._graph.node if name in map(text_of, other.input)]
            if len(readers) != 1 or readers[0].op_type not in {"Add", "Clip", "Relu"}:
                break
            name = text_of(readers[0].output[0])
        return name

    def _array(self, name: str) -> np.ndarray:
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self._constants[name]))

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _from_bytes(self, name: str) -> str:
        """What a tensor is once it has been bytes."""
        from onnx import helper

        if name in self._made:
            return self._made[name]
        scale, zero = self._grids[name]
        grid = [self._constant(f"{name}_scale", np.float32(scale)), self._constant(f"{name}_zero", np.uint8(zero))]
        self._made[name] = f"{name}_dequantized"
        self._behind[name] = [
            helper.make_node("QuantizeLinear", [name, *grid], [f"{name}_bytes"], f"{name}_quantize"),
            helper.make_node("DequantizeLinear", [f"{name}_bytes", *grid], [self._made[name]], f"{name}_dequantize"),
        ]
        return self._made[name]

    def _dequantize(self, node: Any, place: int, values: np.ndarray, scales: np.ndarray, axis: int) -> None:
        from onnx import helper

        own = f"{self._name(node)}_{'xwb'[place]}"
        inputs = [
            self._constant(f"{own}_bytes", values),
            self._constant(f"{own}_scale", scales),
            self._constant(f"{own}_zero", np.zeros(len(scales), values.dtype)),
        ]
        node.input[place] = f"{own}_dequantized"
        made = helper.make_node("DequantizeLinear", inputs, [node.input[place]], f"{own}_dequantize", axis=axis)
        self._behind.setdefault(f"weights of {self._name(node)}", []).append(made)

    def _quantize_weight(self, node: Any, weight: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns scales, and what the bias has to make up for."""
        rows = tuple(other for other in range(weight.ndim) if other != axis)
        scales = (np.abs(weight).max(axis=rows, initial=0) / _MOST).astype(np.float32)
        scales[scales < np.finfo(np.float32).tiny] = 1
        shaped = scales.reshape([-1 if other == axis else 1 for other in range(weight.ndim)])
        steps = np.clip(np.rint(weight / shaped), -_MOST, _MOST).astype(np.int8)
        self._dequantize(node, 1, steps, scales, axis)
        added = steps * shaped.astype(np.float64) - weight
        return scales, self._corrections.shift(self._name(node), text_of(node.input[0]), added, axis)

    def _correct_bias(self, node: Any, shift: np.ndarray) -> None:
        """In a constant of its own: others may read the one that there is."""
        from onnx import helper

        has_bias = len(node.input) > 2 and bool(node.input[2])
        known = self._constants.get(node.input[2]) if has_bias else None
        if attributes(node).get("beta", 1.0) != 1 or (has_bias and (known is None or list(known.dims) != [len(shift)])):
            return
        own, name = f"{self._name(node)}_b_corrected", self._name(node)
        bias = self._array(node.input[2]) if has_bias else np.zeros(len(shift))
        self._constant(own, (bias - shift).astype(np.float32))
        self._constants[own] = self._graph.initializer[-1]
        if node.op_type != "MatMul":
            node.input[:] = [*node.input[:2], own]
            return
        result = node.output[0]
        node.name, node.output[0] = name, f"{result}_without_bias"
        made = helper.make_node("Add", [node.output[0], own], [result], f"{name}_add_bias")
        self._behind[f"sum behind {name}"] = [made]

    def _quantize_bias(self, node: Any, scales: np.ndarray) -> None:
        constant = self._constants.get(node.input[2])
        if constant is None or list(constant.dims) != [len(scales)] or attributes(node).get("beta", 1.0) != 1:
            return  # it stays as it is
        products = (scales * np.float32(self._grids[text_of(node.input[0])][0])).astype(np.float32)
        bias = self._array(node.input[2])
        steps = np.rint(bias.astype(np.float64) / products) if (products > 0).all() else np.full(bias.shape, np.inf)
        if np.isfinite(steps).all() and np.abs(steps).max(initial=0) < 2**31:
            self._dequantize(node, 2, steps.astype(np.int32), products, 0)
