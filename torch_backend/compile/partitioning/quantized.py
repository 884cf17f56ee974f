"""Which quantizations of a graph regions take: a Q with all that reads its bytes, up to the DQs, or nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Set

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


def read_quantized(graph: Graph, constants: Set[Node], declined: Mapping[Node, str]) -> dict[Node, str | None]:
    """Why the host keeps each Q and each DQ; None for these, and for moves between them, where a region has them.

    `declined`: ops that no region is to have, and why.
    """
    found: dict[Node, str | None] = {}
    for node in graph.nodes:
        if node in constants:
            continue
        if dequantizes(node):
            found.setdefault(node, "its bytes come from no quantization")
        elif quantizes(node):
            readers = _readers(node)
            reasons = (declined.get(n) or _reason(n, node, constants) for n in (node, *readers))
            reason = found[node] = next((r for r in reasons if r), None)
            if reason is None:
                found |= dict.fromkeys(readers)
            else:
                found |= dict.fromkeys(filter(dequantizes, readers), "its quantization stays with the host")
    return found


def _readers(quantize: Node) -> list[Node]:
    """What reads the bytes of a Q, at once or after moves."""
    found: dict[Node, None] = {}
    open_nodes = list(quantize.users)
    while open_nodes:
        node = open_nodes.pop()
        if node not in found:
            found[node] = None
            open_nodes += node.users if node.target in MOVES else ()
    return list(found)


def _reason(node: Node, quantize: Node, constants: Set[Node]) -> str | None:
    """Why a Q, or what reads its bytes, is not for regions."""
    if node.op == "output":
        return "its bytes are a result"
    call = Call(node, constants)
    if node is quantize:
        source = tensor_reason(call.value(call.args["input"]))
        return source or tensor_reason(call.output, BYTES) or check_grid(call)
    if dequantizes(node):
        made = Call(quantize, constants).args
        if any(made[name] is not call.args[name] and made[name] != call.args[name] for name in ("scale", "zero_point")):
            return f"{layer_name(node)} takes its bytes for those of another"
        return tensor_reason(call.output)
    # What another op computes, a size, might put the move into a later region.
    if node.target not in MOVES or len(node.all_input_nodes) != 1:
        return f"its bytes are read by {node.target}"
    return tensor_reason(call.output, BYTES)
