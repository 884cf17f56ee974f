"""Loads torch.ops.softneuro and teaches torch the shapes of its results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import softneuro
from softneuro.torch_backend import registry

log = logging.getLogger("softneuro.torch_backend")
_library: torch.library.Library | None = None


def load() -> None:
    """Loads the ops, once. Raises softneuro.Error if the installation was built without them."""
    global _library  # noqa: PLW0603
    if _library is not None:
        return
    path = Path(softneuro.__file__).parent / "_ops.so"
    if not path.exists():
        raise softneuro.Error(
            "this installation of softneuro was built without torch ops: install torch >= 2.11, then reinstall "
            "softneuro with --no-build-isolation"
        )
    torch.ops.load_library(path)
    _library = torch.library.Library("softneuro", "IMPL")
    _library.impl("run_region_slow", _run_region_slow, "CPU")
    torch.library.register_fake("softneuro::run_region", _fake_region, lib=_library)
    torch.library.register_fake("softneuro::run_region_slow", _fake_region, lib=_library)
    torch.library.register_fake("softneuro::conv2d", _fake_conv2d, lib=_library)
    torch.library.register_fake("softneuro::linear", _fake_linear, lib=_library)


def _run_region_slow(
    handle: str, inputs: list[torch.Tensor], weights: list[torch.Tensor], sizes: list[int]
) -> list[torch.Tensor]:
    try:
        return registry.find(handle).resolve(inputs, weights, sizes)
    except Exception as error:
        # The C interface between here and the caller keeps no message.
        softneuro._C.set_region_error(f"{type(error).__name__}: {error}")
        log.debug("region %s failed", handle, exc_info=True)
        raise


def _fake_region(
    handle: str, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
) -> list[torch.Tensor]:
    return registry.find(handle).run_host(inputs, weights, sizes)


def _fake_conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    activation: str,
    routine: str,
) -> torch.Tensor:
    spatial = [
        (size + 2 * pad - dil * (kernel - 1) - 1) // step + 1
        for size, pad, dil, kernel, step in zip(x.shape[2:], padding, dilation, weight.shape[2:], stride, strict=True)
    ]
    return x.new_empty([x.shape[0], weight.shape[0], *spatial])


def _fake_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, routine: str
) -> torch.Tensor:
    return x.new_empty([*x.shape[:-1], weight.shape[0]])
