"""Loads torch.ops.softneuro and teaches torch the shapes of its results."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

import softneuro
from softneuro.torch_backend import registry

if TYPE_CHECKING:
    from softneuro.torch_backend.call.runtime import RegionRuntime

log = logging.getLogger("softneuro.torch_backend")
_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "relu": functional.relu,
    "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "softplus": functional.softplus,
    "mish": functional.mish,
    "exp": torch.exp,
    "log": torch.log,
    "erf": torch.erf,
}
_path = Path(softneuro.__file__).parent / "_ops.so"


def available() -> bool:
    """Whether this installation was built with torch ops."""
    return _path.exists()


@functools.cache
def load() -> torch.library.Library:
    """Loads the ops, once, and returns what keeps their Python side registered.

    Raises softneuro.Error if the installation was built without them.
    """
    if not available():
        raise softneuro.Error(
            "this installation of softneuro was built without torch ops: install torch >= 2.11, then reinstall "
            "softneuro with --no-build-isolation"
        )
    torch.ops.load_library(_path)
    library = torch.library.Library("softneuro", "IMPL")
    library.impl("run_region_slow", _region_op(lambda region: region.resolve), "CPU")
    library.impl("run_region_instead", _region_op(lambda region: region.run_otherwise), "CPU")
    library.impl("run_region_on_host", _region_op(lambda region: region.stand_in), "CPU")
    torch.library.register_fake("softneuro::run_region", _fake_region, lib=library)
    torch.library.register_fake("softneuro::run_region_updating", lambda h, _, *a: _fake_region(h, *a), lib=library)
    torch.library.register_fake("softneuro::run_region_slow", _fake_region, lib=library)
    torch.library.register_fake("softneuro::run_region_instead", _fake_region, lib=library)
    torch.library.register_fake("softneuro::run_region_on_host", _fake_region, lib=library)
    # Inductor takes an op that changes its arguments only where graphs can be made functional of it.
    library.impl("run_region_updating", _never_functional, "Functionalize")
    # No net is ever ready for tensors without values: run_region takes them.
    torch.library.register_fake("softneuro::run_known", lambda *_: [], lib=library)
    torch.library.register_fake("softneuro::run_known_updating", lambda *_: [], lib=library)
    _define_layer(library, "conv2d", _reference_conv2d)
    _define_layer(library, "sparse_conv2d", _reference_conv2d)
    _define_layer(library, "fused_sparse_conv2d", _reference_pair, tensors=5)
    _define_layer(library, "linear", _reference_linear)
    _define_layer(library, "attention", _reference_attention, tensors=4)
    for name, fake in (("softneuro::qconv2d", _fake_qconv2d), ("softneuro::qlinear", _fake_qlinear)):
        torch.library.register_fake(name, fake, lib=library)
        torch.library.register_autograd(name, _no_gradients, setup_context=_gives_no_gradients, lib=library)
    return library


def _region_op(method: Callable[[RegionRuntime], Callable[..., list[torch.Tensor]]]) -> Callable[..., Any]:
    """An op of a region's handle, inputs, weights and sizes."""

    def op(handle: str, *arguments: Any) -> list[torch.Tensor]:
        try:
            region = registry.find(handle)
            return region.made(method(region)(*arguments))
        except Exception as error:
            # The C interface between here and the caller keeps no message.
            softneuro._C.set_region_error(f"{type(error).__name__}: {error}")
            log.debug("region %s failed", handle, exc_info=True)
            raise

    return op


def _never_functional(*_: Any) -> Any:
    raise softneuro.Error("regions are put into graphs that are functional already")


def _fake_region(
    handle: str, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
) -> list[torch.Tensor]:
    region = registry.find(handle)
    return region.made(region.run_host(inputs, weights, sizes))


# Torch leaves out trailing arguments that have their default.
def _reference_conv2d(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *rest: Any) -> Any:
    defaults: tuple[Any, ...] = ([1, 1], [0, 0], [1, 1], 1, "none", "")
    stride, padding, dilation, groups, activation, _ = (*rest, *defaults[len(rest) :])
    return _ACTIVATIONS[activation](functional.conv2d(x, weight, bias, stride, padding, dilation, groups))


def _reference_pair(x: torch.Tensor, first: torch.Tensor, first_bias: Any, second: torch.Tensor, *rest: Any) -> Any:
    defaults: tuple[Any, ...] = (None, *([1, 1], [0, 0], [1, 1], 1, "none") * 2, "")
    second_bias, *stages, _ = (*rest, *defaults[len(rest) :])
    between = _reference_conv2d(x, first, first_bias, *stages[:5])
    return _reference_conv2d(between, second, second_bias, *stages[5:])


def _reference_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *rest: Any) -> Any:
    return _ACTIVATIONS[rest[0] if rest else "none"](functional.linear(x, weight, bias))


def _reference_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any = None, *rest: Any) -> Any:
    defaults: tuple[Any, ...] = (False, None, False, "")
    causal, scale, shared, _ = (*rest, *defaults[len(rest) :])
    attend = functional.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=shared)


def _define_layer(
    library: torch.library.Library, name: str, reference: Callable[..., torch.Tensor], tensors: int = 3
) -> None:
    """Shapes and gradients of a layer's op are those of the host's functions. Its first arguments are tensors."""
    qualified = f"softneuro::{name}"

    def fake(*arguments: Any) -> torch.Tensor:
        return torch.empty(reference(*arguments).shape, dtype=torch.float32, device=arguments[0].device)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*(*inputs, *[None] * tensors)[:tensors])
        ctx.given = len(inputs)
        ctx.rest = inputs[tensors:]

    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        needed = (*ctx.needs_input_grad, *[False] * tensors)[:tensors]
        with torch.enable_grad():
            operands = [
                None if t is None else t.detach().requires_grad_(n)
                for t, n in zip(ctx.saved_tensors, needed, strict=True)
            ]
            output = reference(*operands, *ctx.rest)
        found = iter(torch.autograd.grad(output, [t for t, n in zip(operands, needed, strict=True) if n], gradient))
        return (*(next(found) if n else None for n in needed), *(None for _ in ctx.rest))[: ctx.given]

    torch.library.register_fake(qualified, fake, lib=library)
    torch.library.register_autograd(qualified, backward, setup_context=setup, lib=library)


def _fake_qconv2d(x: torch.Tensor, _scale: float, _zero_point: int, weight: torch.Tensor, *rest: Any) -> Any:
    defaults: tuple[Any, ...] = (None, None, [1, 1], [0, 0], [1, 1], 1, None)
    _, _, stride, padding, dilation, groups, out_scale = (*rest, *defaults[len(rest) :])[: len(defaults)]
    like = functional.conv2d(x.float(), weight.float(), None, stride, padding, dilation, groups)
    return torch.empty(like.shape, dtype=_type_of(out_scale), device=x.device)


def _fake_qlinear(x: torch.Tensor, _scale: float, _zero_point: int, weight: torch.Tensor, *rest: Any) -> Any:
    like = functional.linear(x.float(), weight.float())
    return torch.empty(like.shape, dtype=_type_of(rest[2] if len(rest) > 2 else None), device=x.device)


def _type_of(out_scale: float | None) -> torch.dtype:
    return torch.float32 if out_scale is None else torch.uint8


def _gives_no_gradients(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.mark_non_differentiable(output)


def _no_gradients(ctx: Any, gradient: torch.Tensor) -> Any:
    """Torch wants one. It is not asked, as no output is differentiable."""
    raise NotImplementedError("ops on bytes have no gradients")
