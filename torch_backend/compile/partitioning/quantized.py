"""Quantizations of a graph: a region has a Q with all that reads its bytes, up to the DQs, or nothing of it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import torch
from torch.fx import Graph, Node

from softneuro.torch_backend.compile.converters.quantize import DEQUANTIZE, QUANTIZE, check_grid
from softneuro.torch_backend.compile.converters.registry import Call, aten, tensor_reason
from softneuro.torch_backend.compile.converters.shape import COPIES, RESHAPES
from softneuro.torch_backend.compile.ops.names import layer_name

BYTES = (torch.uint8, torch.int8)
# Ops of one tensor, whose elements they leave as they are.
MOVES = {*RESHAPES, *COPIES, aten.permute.default, aten.transpose.int, aten.t.default}


def quantizes(node: Node) -> bool:
    """Whether an op is a Q of a whole tensor."""
    return str(node.target) in QUANTIZE


def dequantizes(node: Node) -> bool:
    """Whether an op is a DQ of a whole tensor."""
    return str(node.target) in DEQUANTIZE


@dataclass(frozen=True)
class BytesOp:
    """A Q, a DQ, or a move of bytes between them."""

    reason: str | None  # why the host keeps it, whatever reads its result
    takes: bool  # it reads the bytes of a Q


def read_quantized(graph: Graph, constants: Set[Node], spelt: Set[Node]) -> dict[Node, BytesOp]:
    """The ops whose bytes are reals inside a region. `spelt`: what is part of a product, whatever it does."""
    found: dict[Node, BytesOp] = {}
    origin: dict[Node, Node] = {}  # by what gives bytes: their Q
    for node in graph.nodes:
        if node in constants or node in spelt:
            continue
        source = node.args[0] if node.args else None
        made = origin.get(source) if isinstance(source, Node) else None
        if quantizes(node):
            origin[node] = node
            found[node] = BytesOp(_quantize_reason(Call(node, constants)), takes=False)
        elif dequantizes(node):
            found[node] = BytesOp(_dequantize_reason(Call(node, constants), made), takes=made is not None)
        elif made is not None and node.target in MOVES and len(node.all_input_nodes) == 1:
            # What another op computes, a size, might put the move into a later region.
            origin[node] = made
            found[node] = BytesOp(tensor_reason(Call(node, constants).output, BYTES), takes=True)
    return found


def _quantize_reason(call: Call) -> str | None:
    source = tensor_reason(call.value(call.args["input"]))
    return source or tensor_reason(call.output, BYTES) or check_grid(call)


def _dequantize_reason(call: Call, quantize: Node | None) -> str | None:
    if quantize is None:
        return "its bytes come from no quantization"
    made = Call(quantize, set()).args
    if any(made[name] is not call.args[name] and made[name] != call.args[name] for name in ("scale", "zero_point")):
        return f"{layer_name(call.node)} takes its bytes for those of another"
    return tensor_reason(call.output)
