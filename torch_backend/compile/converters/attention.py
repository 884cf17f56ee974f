"""Ops that torch has for whole layers of a transformer (its "fast path"), taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter, ranks
from softneuro.torch_backend.compile.ops.reals import REALS

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

_PROJECTIONS = ("qkv_weight", "qkv_bias", "proj_weight", "proj_bias")
_REST = tuple(f"{kind}_{name}_{i}" for kind in ("norm", "ffn") for name in ("weight", "bias") for i in (1, 2))
# By number, what a mask has: rows and columns of scores; batch and keys; all four.
_MASK_RANKS = {0: 2, 1: 2, 2: 4}


def _mask_reason(call: Call) -> str | None:
    """Where a mask is true, or is a number other than 0, nothing is attended to."""
    mask = call.args["mask"]
    if mask is None:
        return None
    if _MASK_RANKS.get(call.args["mask_type"]) != call.rank("mask"):
        return f"its mask of rank {call.rank('mask')} is of type {call.args['mask_type']}"
    dtype = call.value(mask).dtype
    return None if dtype in (*REALS, torch.bool) else f"its mask is {dtype}"


def _weights_reason(call: Call) -> str | None:
    """Without need_weights there are none."""
    wanted = any(user.args[1] == 1 for user in call.node.users)
    return "it gives no attention weights" if wanted and not call.args["need_weights"] else None


@dataclass(frozen=True)
class _Shape:
    """An attention's batch, rows of queries and of keys, heads, and columns of one head."""

    batch: int
    rows: int
    heads: int
    columns: int

    @property
    def width(self) -> int:
        """Columns of all heads."""
        return self.heads * self.columns


@converter(
    aten._transformer_encoder_layer_fwd.default,
    check=(constant(*_PROJECTIONS, *_REST), ranks("src", 3), _mask_reason),
    ops=12,
    takes_masks=True,
)
def encoder_layer(low: Lowering, call: Call) -> int:
    """Attention, then two linear layers, each with a residual and a normalisation before or after it."""

    def norm(blob: int, number: int) -> int:
        weights = low.weights(weight=call[f"norm_weight_{number}"], bias=call[f"norm_bias_{number}"])
        return low.add("layer_norm", [blob], weights, axes=1, eps=float(call["eps"]))

    def feed(blob: int, number: int) -> int:
        return _linear(low, blob, call[f"ffn_weight_{number}"], call[f"ffn_bias_{number}"])

    source, first = low.blob(call["src"]), bool(call["norm_first"])
    read = norm(source, 1) if first else source
    value = low.add("binary", [_attention(low, call, [read] * 3, "src")[0], source], function="add")
    value = value if first else norm(value, 1)
    inner = feed(norm(value, 2) if first else value, 1)
    inner = low.add("activation", [inner], function="gelu" if call["use_gelu"] else "relu")
    value = low.add("binary", [feed(inner, 2), value], function="add")
    return value if first else norm(value, 2)


@converter(
    aten._native_multi_head_attention.default,
    check=(constant(*_PROJECTIONS), ranks("query", 3), _mask_reason, _weights_reason),
    many=True,
    ops=5,
    takes_masks=True,
)
def multi_head_attention(low: Lowering, call: Call) -> list[int]:
    """Projections, attention of each head, a projection; and the heads' weights if they are wanted."""
    weighted = any(user.args[1] == 1 for user in call.node.users)
    sources = [low.blob(call[name]) for name in ("query", "key", "value")]
    return _attention(low, call, sources, "query", weighted=weighted)


def _linear(low: Lowering, blob: int, weight: Node, bias: Node) -> int:
    return low.add("linear", [blob], {"weight": low.weight(weight), **low.weights(bias=bias)})


def _attention(low: Lowering, call: Call, sources: list[int], name: str, *, weighted: bool = False) -> list[int]:
    batch, rows, _ = call.shape(name)
    width = call.shape("proj_weight")[1]
    heads = int(call["num_heads"] if call.has("num_heads") else call["num_head"])
    shape = _Shape(batch, rows, heads, width // heads)
    if sources[0] == sources[1] == sources[2]:
        projected = [_linear(low, sources[0], call["qkv_weight"], call["qkv_bias"])]
    else:
        weight, bias = low.constant(call["qkv_weight"]), low.constant(call["qkv_bias"])
        parts = [slice(i * width, (i + 1) * width) for i in range(3)]
        projected = [
            low.add("linear", [source], {"weight": weight[part], "bias": bias[part]})
            for source, part in zip(sources, parts, strict=True)
        ]
    heads_of = [_heads(low, projected, shape, number) for number in range(3)]
    kept = _kept(low, call, shape)
    if not weighted:
        inputs = heads_of if kept is None else [*heads_of, kept]
        context = low.add("attention", inputs, mask="keep", nan_if_empty=1)
        return [_linear(low, _rows(low, context, shape), call["proj_weight"], call["proj_bias"])]
    context, weights = _by_parts(low, heads_of, kept, shape)
    if call["average_attn_weights"]:
        weights = low.add("reduce", [weights], function="mean", axes=[1], keepdim=0)
    return [_linear(low, _rows(low, context, shape), call["proj_weight"], call["proj_bias"]), weights]


def _heads(low: Lowering, projected: list[int], shape: _Shape, number: int) -> int:
    """Queries, keys or values, [B,H,M,D], of a joint projection or of three."""
    if len(projected) == 1:
        start = number * shape.width
        blob = low.add("slice", projected, axis=2, start=start, end=start + shape.width)
    else:
        blob = projected[number]
    blob = low.add("reshape", [blob], shape=[shape.batch, shape.rows, shape.heads, shape.columns])
    return low.add("transpose", [blob], perm=[0, 2, 1, 3])


def _rows(low: Lowering, blob: int, shape: _Shape) -> int:
    """Heads side by side: [B,M,H*D]."""
    blob = low.add("transpose", [blob], perm=[0, 2, 1, 3])
    return low.add("reshape", [blob], shape=[shape.batch, shape.rows, shape.width])


def _kept(low: Lowering, call: Call, shape: _Shape) -> int | None:
    """Where scores count, of four axes that broadcast to them."""
    mask = call["mask"]
    if mask is None:
        return None
    if call.value(mask).dtype == torch.bool and call.is_blob("mask"):
        kept = low.add("logical", [low.stored(mask)], function="not")
    else:
        nothing = low.add("constant", [], {"value": torch.zeros(1)})
        kept = low.add("compare", [low.blob(mask), nothing], function="eq")
    full = {0: [1, 1, shape.rows, shape.rows], 1: [shape.batch, 1, 1, shape.rows]}
    wanted = full.get(call["mask_type"])
    return kept if wanted is None else low.add("reshape", [kept], shape=wanted)


def _by_parts(low: Lowering, heads_of: list[int], kept: int | None, shape: _Shape) -> tuple[int, int]:
    """The context, and the heads' weights, which no routine of the layer gives."""
    queries = low.add("binary", heads_of[:1], function="mul", scalar=shape.columns**-0.5)
    scores = low.add("matmul", [queries, heads_of[1]], transpose_b=1)
    if kept is not None:
        dropped = low.add("constant", [], {"value": torch.full((1,), float("-inf"))})
        scores = low.add("where", [kept, scores, dropped])
    weights = low.add("softmax", [scores], axis=3, log=0)
    return low.add("matmul", [weights, heads_of[2]]), weights
