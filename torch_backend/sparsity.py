"""Zeros in a model's weights, and what a plan that makes use of them gains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from softneuro.report.sparsity import LayerSparsity, Measured, Sparsity, look_at
from softneuro.torch_backend.compile.conversion.evaluation import memory_of
from softneuro.torch_backend.compile.ops.reals import REALS
from softneuro.torch_backend.explain import tune_ahead
from softneuro.torch_backend.exported import LoadedProgram


def sparsity(model: Any, *inputs: Any, **options: Any) -> Sparsity:
    """Tells of each weight how many zeros it has and in which pattern; printed, the result is a table.

    `model` is a module, compiled or not, or a loaded program. With `inputs` it is tuned for them under the backend's
    `options` (with `tune="cached"` nothing is measured), and the result also has the milliseconds of each layer's
    fastest routines with and without use of zeros, and of the best plans.
    """
    layers = list(_layers(getattr(model, "_orig_mod", model)))
    measured = Measured()
    for plan in tune_ahead(model, inputs, **options).regions if inputs else ():
        rows = [{name: getattr(layer, name) for name in ("name", "measured", "dense_s", "sparse_s")}
                for layer in plan.layers]  # fmt: skip
        measured.add(plan.dense_s, plan.best_s, rows)
    return measured.report(layers)


def _layers(model: Any) -> Iterator[LayerSparsity]:
    if isinstance(model, LoadedProgram):
        state = model.program.state_dict
        for name, tensor in state.items():
            weight = name.removesuffix("_orig")  # of a mask that was not removed when the program was exported
            mask = state.get(f"{weight}_mask") if weight != name else None
            if f"{name.removesuffix('_mask')}_orig" not in state or mask is not None:
                yield from _look(weight, "", tensor if mask is None else tensor.detach() * mask)
        return
    for path, module in model.named_modules():
        if isinstance(module, nn.utils.parametrize.ParametrizationList):
            continue
        names = [name for name, _ in module.named_parameters(recurse=False)]
        # The product stands for a weight whose mask is not removed.
        names = [name.removesuffix("_orig") if hasattr(module, f"{name.removesuffix('_orig')}_mask") else name
                 for name in names]  # fmt: skip
        masked = getattr(module, "parametrizations", {})
        for name in dict.fromkeys([*names, *masked]):
            with torch.no_grad():
                tensor = getattr(module, name)
            kind = nn.utils.parametrize.type_before_parametrizations(module).__name__
            yield from _look(f"{path}.{name}" if path else name, kind, tensor)


def _look(name: str, kind: str, tensor: Any) -> Iterator[LayerSparsity]:
    if not isinstance(tensor, torch.Tensor) or tensor.dim() < 2 or tensor.numel() == 0:
        return
    value, note = tensor.detach(), ""
    if value.device.type != "cpu":
        note = f"with the host, as it is on {value.device.type}"
    elif value.layout != torch.strided:
        note = f"with the host, as its layout is {str(value.layout).removeprefix('torch.')}"
        value = value.to_dense()
    if type(value) is not torch.Tensor and hasattr(value, "dequantize"):
        value = value.dequantize()
    if value.dtype not in REALS:
        return
    yield look_at(name.removesuffix(".weight"), kind, memory_of(value.cpu()), note)
