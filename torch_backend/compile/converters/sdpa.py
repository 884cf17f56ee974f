"""Scaled dot product attention: as torch's kernel for CPUs computes it, and the softmax of its other ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from softneuro.torch_backend.compile.converters.registry import Call, aten, converter, equals, ranks
from softneuro.torch_backend.compile.ops.reals import REALS

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering


def _mask_reason(call: Call) -> str | None:
    if call.args["attn_mask"] is None:
        return None
    if call.args["is_causal"]:
        return "it has a mask besides being causal"
    mask, keys = call.value(call.args["attn_mask"]), call.shape("key")[-2]
    if mask.dtype not in (*REALS, torch.bool):
        return f"its mask is {mask.dtype}"
    return None if mask.dim() in (2, 3, 4) and mask.shape[-1] == keys else "its mask is broadcast along the keys"


@converter(
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten.scaled_dot_product_attention.default,
    check=(equals(dropout_p=0.0), ranks("query", 4), _mask_reason),
    takes_masks=True,
    ops=3,
)
def attention(low: Lowering, call: Call) -> int:
    """The first result; a row of which no key counts is zero."""
    inputs = [low.blob(call[name]) for name in ("query", "key", "value")]
    attributes: dict[str, Any] = {} if call["scale"] is None else {"scale": float(call["scale"])}
    mask = call["attn_mask"]
    if mask is not None:
        keeps = call.value(mask).dtype == torch.bool and call.is_blob("attn_mask")
        blob = low.stored(mask) if keeps else low.blob(mask)
        shape = list(call.shape("attn_mask"))
        if len(shape) < 4:
            blob = low.add("reshape", [blob], shape=[1] * (4 - len(shape)) + shape)
        inputs.append(blob)
        attributes["mask"] = "keep" if keeps else "add"
    if call["is_causal"]:
        attributes["after"] = 0
    return low.add("attention", inputs, **attributes)


@converter(aten._safe_softmax.default)
def safe_softmax(low: Lowering, call: Call) -> int:
    """A softmax whose rows of nothing but -inf become zero."""
    axis = call.axis("dim", call.rank())
    return low.add("softmax", [low.blob(call["self"])], axis=axis, safe=1)
