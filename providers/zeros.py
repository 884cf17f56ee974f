"""Zeros in the weights of an ONNX file, by the node that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import softneuro
from softneuro.report.sparsity import LayerSparsity, look_at

# Ops that read bytes themselves have the weight and its zero point at these places.
_BYTES = {
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
    "QGemm": (3, 5),
    "MatMulInteger": (1, 3),
    "ConvInteger": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
    "DynamicQuantizeMatMul": (1, 3),
}
# What leads from initializers to a weight in files that were not optimised, as masks do.
_FOLDED: dict[str, Any] = {
    "Mul": np.multiply,
    "Identity": lambda value: value,
    "Cast": lambda value: value,
    "Transpose": np.transpose,
}
_WEIGHTS = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1, "FusedConv": 1, "FusedMatMul": 1, "FusedGemm": 1}


def layers(path: Any) -> Iterator[LayerSparsity]:
    """The weights of the main graph's convolutions and matrix products, as the file has them.

    Raises:
        Error: the package `onnx` is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise softneuro.Error("to read a model's weights takes the package onnx: pip install onnx") from error
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    tensors: dict[str, Any] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    tensors |= {sparse.values.name: _dense(sparse) for sparse in graph.sparse_initializer}
    for node in graph.node:
        given = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant" and "value" in given:
            tensors[node.output[0]] = numpy_helper.to_array(given["value"].t)
        elif node.op_type == "Constant" and "sparse_value" in given:
            tensors[node.output[0]] = _dense(given["sparse_value"].sparse_tensor)
        elif node.op_type == "DequantizeLinear" and (stored := _given(node, tensors, 0)) is not None:
            axis = given["axis"].i if "axis" in given else 1
            tensors[node.output[0]] = _less(stored, _given(node, tensors, 2), axis)
        elif node.op_type in _FOLDED and all(name in tensors for name in node.input):
            order = [list(given["perm"].ints)] if "perm" in given else []
            tensors[node.output[0]] = _FOLDED[node.op_type](*(tensors[name] for name in node.input), *order)
        elif node.op_type in _BYTES:
            weight, zero = (_given(node, tensors, place) for place in _BYTES[node.op_type])
            yield from _look(node, None if weight is None else _less(weight, zero, 0 if "Conv" in node.op_type else 1))
        elif node.op_type in _WEIGHTS:
            turned = node.op_type in ("Gemm", "FusedGemm") and "transB" in given and given["transB"].i
            yield from _look(node, _given(node, tensors, _WEIGHTS[node.op_type]), bool(turned))


def _look(node: Any, weight: Any, turned: bool = False) -> Iterator[LayerSparsity]:
    if weight is None or weight.ndim < 2 or weight.size == 0:
        return
    # A layer's weight has a row for each output.
    rows = weight if "Conv" in node.op_type or turned or weight.ndim > 2 else weight.T
    yield look_at(node.name or node.output[0], node.op_type, np.ascontiguousarray(rows, dtype=np.float32))


def _given(node: Any, tensors: dict[str, Any], place: int) -> Any:
    return tensors.get(node.input[place]) if place < len(node.input) else None


def _less(stored: Any, zero: Any, axis: int) -> Any:
    """Bytes less their zero point, which is 0 where the value is."""
    stored = stored.astype(np.int32)
    if zero is None:
        return stored
    zero = zero.astype(np.int32)
    if zero.ndim == 1 and zero.size > 1 and stored.shape[axis] == zero.size:
        zero = zero.reshape([-1 if other == axis % stored.ndim else 1 for other in range(stored.ndim)])
    return stored - (zero if zero.ndim in (0, stored.ndim) else zero.reshape(-1)[0])


def _dense(sparse: Any) -> Any:
    from onnx import numpy_helper

    values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(list(sparse.dims), values.dtype)
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values
    else:
        dense.reshape(-1)[indices] = values
    return dense
