"""Ops that torch has for whole layers of a transformer (its "fast path"), taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter, ranks
from softneuro.torch_backend.compile.host.own_steps import OwnStep, like
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


# Up to here layers are faster than a step: 1.49 against 1.04 times eager at 32 rows of 128 columns, the same at 256 of
# 256 (an AMD EPYC with AVX2, one thread). Beyond, the host's kernel needs no memory for scores.
_MOST_SCORES = 1 << 20


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

    @property
    def scores(self) -> int:
        """One for each query and key, of all heads."""
        return self.batch * self.heads * self.rows**2


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
    dtype = call.value(call[name]).dtype
    if weighted:
        context, weights = _by_layers(low, call, projected, shape, dtype)
        if call["average_attn_weights"]:
            weights = low.add("reduce", [weights], function="mean", axes=[1], keepdim=0)
        return [_linear(low, context, call["proj_weight"], call["proj_bias"]), weights]
    if call["mask"] is None and shape.scores <= _MOST_SCORES:
        context, _ = _by_layers(low, call, projected, shape, dtype)
    else:
        context = _by_the_host(low, call, projected, shape, dtype)
    return [_linear(low, context, call["proj_weight"], call["proj_bias"])]


def _by_the_host(low: Lowering, call: Call, projected: list[int], shape: _Shape, dtype: torch.dtype) -> int:
    """The host's own kernel for q, k and v, which needs no memory for scores."""
    step = OwnStep(low, call.node)
    if len(projected) == 1:
        joint = step.read(projected[0], like([shape.batch, shape.rows, 3 * shape.width], dtype))
        apart = step.call(aten.view.default, joint, [shape.batch, shape.rows, 3, shape.heads, shape.columns])
        moved = step.call(aten.permute.default, apart, [2, 0, 3, 1, 4])
        parts = [step.call(aten.select.int, moved, 0, i) for i in range(3)]
    else:
        alone = [step.read(blob, like([shape.batch, shape.rows, shape.width], dtype)) for blob in projected]
        split = [step.call(aten.view.default, n, [shape.batch, shape.rows, shape.heads, shape.columns]) for n in alone]
        parts = [step.call(aten.transpose.int, node, 1, 2) for node in split]
    dropped = _dropped(low, call, step, shape)
    kept = None if dropped is None else step.call(aten.logical_not.default, dropped)
    result = step.call(aten.scaled_dot_product_attention.default, *parts, attn_mask=kept)
    if dropped is not None:  # a row that attends to nothing is no number here
        nothing = step.call(aten.all.dim, dropped, -1, True)
        result = step.call(aten.masked_fill.Scalar, result, nothing, float("nan"))
    value = like([shape.batch, shape.rows, shape.width], dtype)
    result = step.call(aten.transpose.int, result, 1, 2)
    return step.give(step.call(aten.reshape.default, result, list(value.shape), value=value))


def _dropped(low: Lowering, call: Call, step: OwnStep, shape: _Shape) -> Node | None:
    """Where scores are not to count, to be broadcast to them."""
    mask = call["mask"]
    if mask is None:
        return None
    value = call.value(mask)
    if value.dtype == torch.bool and call.is_blob("mask"):
        node = step.read(low.stored(mask), like(list(value.shape), torch.bool))
    else:
        node = step.read(
            low.blob(mask), like(list(value.shape), value.dtype if value.dtype in REALS else torch.float32)
        )
        node = step.call(aten._to_copy.default, node, dtype=torch.bool)
    return step.call(aten.view.default, node, [shape.batch, 1, 1, -1]) if call["mask_type"] == 1 else node


def _by_layers(low: Lowering, call: Call, projected: list[int], shape: _Shape, dtype: torch.dtype) -> tuple[int, int]:
    """The context, and the heads' weights, which the host's kernel does not give."""

    def head(number: int, perm: list[int]) -> int:
        blob, start = projected[0], number * shape.width
        if len(projected) == 1:
            blob = low.add("slice", [blob], axis=2, start=start, end=start + shape.width)
        else:
            blob = projected[number]
        blob = low.add("reshape", [blob], shape=[shape.batch, shape.rows, shape.heads, shape.columns])
        return low.add("transpose", [blob], perm=perm)

    queries = low.add("binary", [head(0, [0, 2, 1, 3])], function="mul", scalar=shape.columns**-0.5)
    scores = low.add("matmul", [queries, head(1, [0, 2, 3, 1])])
    step = OwnStep(low, call.node)
    if (dropped := _dropped(low, call, step, shape)) is not None:
        value = like([shape.batch, shape.heads, shape.rows, shape.rows], dtype)
        read = step.read(scores, value)
        scores = step.give(step.call(aten.masked_fill.Scalar, read, dropped, float("-inf"), value=value))
    weights = low.add("softmax", [scores], axis=3, log=0)
    context = low.add("matmul", [weights, head(2, [0, 2, 1, 3])])
    context = low.add("transpose", [context], perm=[0, 2, 1, 3])
    return low.add("reshape", [context], shape=[shape.batch, shape.rows, shape.width]), weights
