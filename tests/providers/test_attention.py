"""Attention of ONNX and of com.microsoft against the CPU provider's own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, whole_session

B, H, M, N, D = 2, 4, 6, 7, 8


def check(model: bytes, feeds: dict[str, np.ndarray] | None = None, bound: float = 1e-5) -> None:
    cpu = cpu_session(model)
    check_same(whole_session(model), cpu, {**random_feeds(cpu), **(feeds or {})}, bound)


def onnx_attention(
    *,
    opset: int = 23,
    flat: bool = False,
    groups: int = H,
    mask: Any = None,
    past: int = 0,
    keys: int = N,
    **attrs: Any,
) -> bytes:
    """`mask`: its type and shape."""
    shapes = {"q": (B, H, M, D), "k": (B, groups, keys, D), "v": (B, groups, keys, D)}
    if flat:
        shapes = {name: (b, n, h * d) for name, (b, h, n, d) in shapes.items()}
        attrs |= {"q_num_heads": H, "kv_num_heads": groups}
    types = {}
    if mask is not None:
        types["mask"], shapes["mask"] = mask
    if past:
        shapes |= {"past_k": (B, groups, past, D), "past_v": (B, groups, past, D)}
    inputs = ["q", "k", "v", "mask" if mask is not None else "", *(("past_k", "past_v") if past else ())]
    outputs: dict[str, Any] = {"y": None, **({"present_k": None, "present_v": None} if past else {})}
    node = helper.make_node("Attention", inputs, list(outputs), **attrs)
    return make_model([node], shapes, outputs, opset=opset, types=types)


MASKS = [
    None,
    ("BOOL", (M, N)),
    ("BOOL", (B, 1, M, N)),
    ("FLOAT", (M, N)),
    ("FLOAT", (B, H, M, N)),
]


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("flat", [False, True])
def test_masks(opset: int, mask: Any, flat: bool) -> None:
    check(onnx_attention(opset=opset, mask=mask, flat=flat))


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_heads(opset: int, groups: int) -> None:
    check(onnx_attention(opset=opset, groups=groups))
    check(onnx_attention(opset=opset, groups=groups, flat=True, scale=0.3))


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("keys", [M, N])
@pytest.mark.parametrize("past", [0, 3])
def test_causal(opset: int, keys: int, past: int) -> None:
    check(onnx_attention(opset=opset, is_causal=1, keys=keys, past=past))


@pytest.mark.skipif(int(onnxruntime.__version__.split(".")[1]) < 32, reason="the runtime may lack Attention 25")
@pytest.mark.parametrize(("left", "right"), [(2, -1), (-1, 2), (1, 2), (0, 0), (3, 0)])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, 3])
def test_windows(left: int, right: int, causal: int, past: int) -> None:
    attrs = {"is_causal": causal, "left_window_size": left, "right_window_size": right}
    check(onnx_attention(opset=25, keys=M, past=past, **attrs))


def test_past() -> None:
    check(onnx_attention(past=5, mask=("BOOL", (M, N + 5))))


def test_cap() -> None:
    check(onnx_attention(softcap=1.5))


@pytest.mark.skipif(int(onnxruntime.__version__.split(".")[1]) < 32, reason="the host may have masks before the cap")
@pytest.mark.parametrize("opset", [23, 24, 25])
def test_cap_besides_masks(opset: int) -> None:
    for mask in MASKS:
        check(onnx_attention(opset=opset, softcap=1.5, mask=mask))
    check(onnx_attention(opset=opset, softcap=1.5, is_causal=1, past=3))


@pytest.mark.parametrize("opset", [23, 24])
def test_rows_that_see_nothing(opset: int) -> None:
    for kind, nothing, everything in (
        ("BOOL", False, True),
        ("FLOAT", np.finfo(np.float32).min, 0),
        ("FLOAT", -np.inf, 0),
        ("FLOAT", -1e30, 0),
    ):
        mask = np.full((M, N), everything, bool if kind == "BOOL" else np.float32)
        mask[2] = nothing
        check(onnx_attention(opset=opset, mask=(kind, (M, N))), {"mask": mask})


def multi_head(*, bias: bool = False, padding: bool = False, scores: bool = False, **attrs: Any) -> bytes:
    shapes: dict[str, Any] = {"q": (B, M, H * D), "k": (B, N, H * D), "v": (B, N, H * D)}
    types, constants = {}, {}
    if bias:
        constants["bias"] = np.random.default_rng(0).standard_normal(3 * H * D).astype(np.float32)
    if padding:
        shapes["padding"], types["padding"] = (B, N), "INT32"
    if scores:
        shapes["scores"] = (B, H, M, N)
    names = ["bias" if bias else "", "padding" if padding else "", "scores" if scores else ""]
    inputs = ["q", "k", "v", *names]
    node = helper.make_node("MultiHeadAttention", inputs, ["y"], domain="com.microsoft", num_heads=H, **attrs)
    return make_model([node], shapes, {"y": (B, M, H * D)}, constants, types=types)


@pytest.mark.parametrize(("bias", "padding", "scores"), list(itertools.product([False, True], repeat=3)))
def test_multi_head_attention(bias: bool, padding: bool, scores: bool) -> None:
    check(multi_head(bias=bias, padding=padding, scores=scores))


def test_multi_head_attributes() -> None:
    check(multi_head(scale=0.2, mask_filter_value=-3.0, padding=True))


def packed(*, bias: bool = True, padding: bool = False, scores: bool = False, **attrs: Any) -> bytes:
    random = np.random.default_rng(0)
    shapes: dict[str, Any] = {"x": (B, M, 12)}
    widths = attrs.get("qkv_hidden_sizes", [H * D] * 3)
    constants = {"w": random.standard_normal((12, sum(widths))).astype(np.float32)}
    types = {}
    if bias:
        constants["bias"] = random.standard_normal(sum(widths)).astype(np.float32)
    if padding:
        shapes["padding"], types["padding"] = (B, M), "INT32"
    if scores:
        shapes["scores"] = (B, H, M, M)
    inputs = ["x", "w", "bias" if bias else "", "padding" if padding else "", "", "scores" if scores else ""]
    node = helper.make_node("Attention", inputs, ["y"], domain="com.microsoft", num_heads=H, **attrs)
    return make_model([node], shapes, {"y": (B, M, widths[2])}, constants, types=types)


@pytest.mark.parametrize(("padding", "scores"), list(itertools.product([False, True], repeat=2)))
def test_packed_attention(padding: bool, scores: bool) -> None:
    kept = np.ones((B, M), np.int32)
    kept[1, 2:] = 0  # of each text something is left
    check(packed(padding=padding, scores=scores), {"padding": kept} if padding else {})


def test_packed_attributes() -> None:
    check(packed(unidirectional=1))
    check(packed(qkv_hidden_sizes=[H * D, H * D, H * 3], scale=0.4))


def test_shapes_that_do_not_fit_are_refused_by_the_host() -> None:
    """Both raise what the runtime raises."""
    model = onnx_attention(mask=("FLOAT", ("rows", "keys")))
    feeds = random_feeds(cpu_session(model), {"rows": M, "keys": N + 2})
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        cpu_session(model).run(None, feeds)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
        whole_session(model).run(None, feeds)
