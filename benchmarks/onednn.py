"""oneDNN's convolution and inner product with prepacked weights, as torch exposes them.

Two ways each, both timed: what inductor's freezing makes of a model (channels-last convolution, MKL's packed inner
product), and oneDNN's own blocked layouts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.shapes import Shape, Weights
from softneuro import _C

Call = Callable[[], object]
_ops = torch.ops.mkldnn


def _convolutions(shape: Shape, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> dict[str, Call]:
    padding, stride, dilation = shape.padding[:2], shape.stride, shape.dilation
    if shape.padding[:2] != shape.padding[2:]:
        return {}
    packed = _ops._reorder_convolution_weight(weight, padding, stride, dilation, shape.groups, list(shape.input))
    last = x.contiguous(memory_format=torch.channels_last)
    # An opaque tensor comes in oneDNN's preferred layout out of a convolution: here one that copies its input.
    channels = shape.input[1]
    if channels >= 8:
        copy = torch.eye(channels).view(channels, channels, 1, 1)
        blocked = torch.mkldnn_convolution(x.to_mkldnn(), copy, None, [0, 0], [1, 1], [1, 1], 1)
    else:
        blocked = x.to_mkldnn()
    reordered = torch._C._nn.mkldnn_reorder_conv2d_weight(
        weight.to_mkldnn(), padding, stride, dilation, shape.groups, list(shape.input)
    )
    opaque_bias = bias.to_mkldnn()
    return {
        "nhwc": lambda: _ops._convolution_pointwise(
            last, packed, bias, padding, stride, dilation, shape.groups, "none", [], ""
        ),
        "blocked": lambda: torch.mkldnn_convolution(
            blocked, reordered, opaque_bias, padding, stride, dilation, shape.groups
        ),
    }


def _inner_products(shape: Shape, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> dict[str, Call]:
    packed = _ops._reorder_linear_weight(weight, shape.input[0])
    calls: dict[str, Call] = {"onednn": lambda: _ops._linear_pointwise(x, packed, bias, "none", [], "")}
    if torch.backends.mkl.is_available():
        by_mkl = torch.ops.mkl._mkl_reorder_linear_weight(weight, shape.input[0])
        calls["mkl"] = lambda: torch.ops.mkl._mkl_linear(x, by_mkl, weight, bias, shape.input[0])
    return calls


def calls(shape: Shape, weights: Weights) -> dict[str, Call]:
    """By name, functions that compute the layer once."""
    weight, bias = torch.from_numpy(weights["weight"]), torch.from_numpy(weights["bias"])
    make = _convolutions if shape.type == "conv2d" else _inner_products
    return make(shape, torch.randn(shape.input), weight, bias)


def clock(threads: int) -> Callable[[], int]:
    """Nanoseconds: one thread's time is its own, whatever else the machine does; that of several is the wall's."""
    return time.thread_time_ns if threads == 1 else time.perf_counter_ns


def settle(call: Call, threads: int, cold: bool) -> None:
    """Before a timed call: caches as asked for, and torch's threads awake, as they are within a network."""
    if cold:
        _C.evict_caches(threads)
    if threads > 1:
        small = torch.zeros(1 << 17)  # as many numbers as torch shares among threads
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            small.add_(1)
    if not cold:
        call()


def call_overhead(kind: str, threads: int) -> float:
    """Seconds that a call takes from Python whatever it computes, so that only kernels are compared."""
    text = "conv2d 1x16x1x1 16x16x1x1" if kind == "conv2d" else "linear 1x16 16x16"
    from benchmarks.shapes import parse

    shape = parse(text)
    now = clock(threads)
    best = []
    for call in calls(shape, shape.weights()).values():
        samples = []
        for _ in range(200):
            start = now()
            call()
            samples.append(now() - start)
        best.append(sorted(samples)[50])
    return min(best) * 1e-9
