"""Normalisations with constant statistics or parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from softneuro.torch_backend.compile.converters.registry import Call, aten, constant, converter, required

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

_STATISTICS = (constant("weight", "bias", "running_mean", "running_var"), required("running_mean", "running_var"))


def _not_training(call: Call) -> str | None:
    return "it is in training mode" if call.has("training") and call["training"] else None


@converter(aten._native_batch_norm_legit_no_training.default, check=_STATISTICS)
@converter(aten.native_batch_norm.default, aten.batch_norm.default, check=(_not_training, *_STATISTICS))
def batch_norm(low: Lowering, call: Call) -> int:
    """Batch normalisation with running statistics."""
    low.watch(call["running_mean"], call["running_var"])
    weights = low.weights(
        weight=call["weight"], bias=call["bias"], mean=call["running_mean"], variance=call["running_var"]
    )
    return low.add("batch_norm", [low.blob(call["input"])], weights, eps=float(call["eps"]))


def _own_statistics(call: Call) -> str | None:
    return None if call["training"] else "it has no statistics"


@converter(aten._native_batch_norm_legit.no_stats, check=(_own_statistics, constant("weight", "bias")))
def own_batch_norm(low: Lowering, call: Call) -> int:
    """Batch normalisation with the statistics of its own input: a group per channel, all images side by side."""
    (images, channels, *plane), source = call.shape("input"), low.blob(call["input"])
    weights = low.weights(weight=call["weight"], bias=call["bias"])
    swapped = [1, 0, *range(2, 2 + len(plane))]
    if images > 1:
        source = low.add("reshape", [low.add("transpose", [source], perm=swapped)], shape=[1, channels, images, *plane])
    result = low.add("group_norm", [source], weights, groups=channels, eps=float(call["eps"]))
    if images > 1:
        result = low.add("reshape", [result], shape=[channels, images, *plane])
        result = low.add("transpose", [result], perm=swapped)
    return result


@converter(aten.native_layer_norm.default, check=constant("weight", "bias"))
def layer_norm(low: Lowering, call: Call) -> int:
    """Layer normalisation over the last axes."""
    weights = low.weights(weight=call["weight"], bias=call["bias"])
    axes = len(call["normalized_shape"])
    return low.add("layer_norm", [low.blob(call["input"])], weights, axes=axes, eps=float(call["eps"]))


@converter(aten.rms_norm.default, aten._fused_rms_norm.default, check=constant("weight"))
def rms_norm(low: Lowering, call: Call) -> int:
    """Division by the root mean square over the last axes; torch computes halves in float32, and so is its own eps."""
    eps = torch.finfo(torch.float32).eps if call["eps"] is None else call["eps"]
    weights, axes = low.weights(weight=call["weight"]), len(call["normalized_shape"])
    return low.add("rms_norm", [low.blob(call["input"])], weights, axes=axes, eps=float(eps))


@converter(aten.native_group_norm.default, check=constant("weight", "bias"))
def group_norm(low: Lowering, call: Call) -> int:
    """Group normalisation."""
    weights = low.weights(weight=call["weight"], bias=call["bias"])
    return low.add("group_norm", [low.blob(call["input"])], weights, groups=int(call["group"]), eps=float(call["eps"]))
