"""Attention with a cache against the CPU provider's own: GroupQueryAttention, lengths of keys, TensorScatter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons, whole_session
from tests.providers.test_ep_context import compiling, load

H, G, D, LONGEST = 4, 2, 16, 32
FAILURES = (
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
)


def group_query(
    batch: int = 2,
    rows: int = 1,
    past: int | None = 5,
    *,
    total: int | None = None,
    packed: bool = False,
    bias: tuple[int, int] | None = None,
    sinks: bool = False,
    positions: bool = False,
    depth: int = D,
    presents: bool = True,
    **attrs: Any,
) -> bytes:
    """`past`: rows of the cache; `total`: rows behind the call, if not those of both. `depth`: of a head."""
    total = (past or 0) + rows if total is None else total
    random = np.random.default_rng(0)
    shapes: dict[str, Any] = {"q": (batch, rows, (H + 2 * G if packed else H) * depth)}
    if not packed:
        shapes |= {"k": (batch, rows, G * depth), "v": (batch, rows, G * depth)}
    if past is not None:
        shapes |= {"pk": (batch, G, past, depth), "pv": (batch, G, past, depth)}
    shapes["lengths"] = (batch,)
    constants: dict[str, np.ndarray] = {"total": np.array(total, np.int32)}
    if attrs.get("do_rotary"):
        angles = random.standard_normal((LONGEST, D // 2))
        constants |= {"cosine": np.cos(angles).astype(np.float32), "sine": np.sin(angles).astype(np.float32)}
    if positions:
        shapes["positions"] = (batch, rows)
    if bias is not None:
        shapes["bias"] = (*bias, rows, total)
    if sinks:
        constants["sinks"] = random.standard_normal(H).astype(np.float32)
    names = ["q", "k", "v", "pk", "pv", "lengths", "total", "cosine", "sine", "positions", "bias", "sinks"]
    inputs = [name if name in shapes or name in constants else "" for name in names]
    outputs: dict[str, Any] = {"y": None, **({"present_k": None, "present_v": None} if presents else {})}
    node = helper.make_node(
        "GroupQueryAttention", inputs, list(outputs), domain="com.microsoft", num_heads=H, kv_num_heads=G, **attrs
    )
    return make_model([node], shapes, outputs, constants, types={"lengths": "INT32", "positions": "INT64"})


def check(model: bytes, lengths: list[int], bound: float = 1e-5, **feeds: np.ndarray) -> None:
    """`lengths`: keys of each of the batch, new ones included."""
    ours, cpu = whole_session(model), cpu_session(model)
    given = random_feeds(cpu) | {"lengths": np.array(lengths, np.int32) - 1} | feeds
    check_same(ours, cpu, given, bound)
    assert not reasons(ours)


def runs(model: bytes) -> bool:
    try:
        cpu_session(model)
    except Exception:
        return False
    return True


PROMPT: dict[str, Any] = {"rows": 5, "past": None}


@pytest.mark.parametrize("packed", [False, True])
def test_prompt(packed: bool) -> None:
    check(group_query(**PROMPT, packed=packed), [5, 5])


def test_prompt_of_different_lengths() -> None:
    check(group_query(**PROMPT), [2, 4])


@pytest.mark.parametrize("packed", [False, True])
def test_a_step_behind_a_past(packed: bool) -> None:
    check(group_query(packed=packed), [6, 6])


def test_steps_of_different_lengths() -> None:
    check(group_query(), [2, 5])


@pytest.mark.parametrize(("rows", "total", "lengths"), [(1, 6, [6, 6]), (1, 6, [1, 4]), (1, 6, [9, 3]), (4, 4, [4, 2])])
def test_cache_that_is_longer(rows: int, total: int, lengths: list[int]) -> None:
    check(group_query(rows=rows, past=10, total=total), lengths)


@pytest.mark.parametrize("past", [4, 12])
@pytest.mark.parametrize("length", [8, 7])
def test_more_rows_behind_a_past(past: int, length: int) -> None:
    if past == 12 or length == 7:
        check(group_query(batch=1, rows=4, past=past, total=8), [length])
    check(group_query(batch=1, rows=4, past=4, total=8, local_window_size=3), [8])


@pytest.mark.parametrize("window", [0, 1, 3, 50])
def test_windows(window: int) -> None:
    check(group_query(**PROMPT, local_window_size=window), [5, 3])
    check(group_query(local_window_size=window), [6, 3])


@pytest.mark.parametrize("causal", [0, 1])
def test_all_see_all(causal: int) -> None:
    for model, lengths in ((group_query(**PROMPT, causal=causal), [5, 3]), (group_query(causal=causal), [6, 3])):
        if not runs(model):
            pytest.skip("the runtime is older than the attribute")
        check(model, lengths)


def test_attributes() -> None:
    check(group_query(scale=0.3, softcap=1.5), [6, 3])
    check(group_query(**PROMPT, scale=0.3, softcap=1.5), [5, 3])
    check(group_query(batch=1, rows=3, scale=0.3, softcap=1.5, local_window_size=2), [8])
    check(group_query(**PROMPT, presents=False), [5, 3])


@pytest.mark.parametrize("bias", [(1, 1), (2, 1), (1, H), (2, H)])
def test_bias(bias: tuple[int, int]) -> None:
    check(group_query(bias=bias), [6, 3])
    check(group_query(bias=bias, past=10, total=6), [6, 3])
    check(group_query(**PROMPT, bias=bias, softcap=1.5), [5, 3])


@pytest.mark.parametrize("nothing", [-np.inf, np.finfo(np.float32).min, -1e30])
def test_bias_that_leaves_nothing(nothing: float) -> None:
    bias = np.zeros((1, 1, 5, 5), np.float32)
    bias[0, 0, 2] = nothing
    check(group_query(**PROMPT, bias=(1, 1)), [5, 5], bias=bias)


@pytest.mark.parametrize("smooth", [0, 1])
def test_sinks(smooth: int) -> None:
    for sinks in (False, True):
        check(group_query(sinks=sinks, smooth_softmax=smooth), [6, 3])
        check(group_query(**PROMPT, sinks=sinks, smooth_softmax=smooth), [5, 3])
        check(group_query(batch=1, rows=3, sinks=sinks, smooth_softmax=smooth, local_window_size=2), [8])


def test_compiled_model_holds_sinks_and_tables(tmp_path: Path) -> None:
    model = group_query(sinks=True, do_rotary=1)
    path, ours = compiling(model, tmp_path, never_worse=False)
    feeds = random_feeds(cpu_session(model)) | {"lengths": np.array([5, 2], np.int32)}
    loaded = load(path)
    for session in (ours, loaded):
        check_same(session, cpu_session(model), feeds)
    assert not reasons(loaded)


@pytest.mark.parametrize("attrs", [{}, {"sinks": True}, {"smooth_softmax": 1}, {"softcap": 1.5}], ids=str)
@pytest.mark.parametrize("window", [0, 1, 2, 4])
def test_windows_of_rows_that_are_padding(attrs: dict[str, Any], window: int) -> None:
    """The host moves them where it cannot take the way that it usually takes."""
    for lengths in ([5, 3], [1, 2]):
        check(group_query(**PROMPT, local_window_size=window, **attrs), lengths)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_rotation(interleaved: int, positions: bool, packed: bool) -> None:
    attrs = {"do_rotary": 1, "rotary_interleaved": interleaved, "positions": positions, "packed": packed}

    def given(*values: list[int]) -> dict[str, np.ndarray]:
        return {"positions": np.array(values)} if positions else {}

    check(group_query(**PROMPT, **attrs), [5, 3], **given([3, 4, 5, 6, 7], [1, 1, 1, 1, 1]))
    check(group_query(**attrs), [6, 3], **given([3], [8]))
    check(group_query(past=9, total=6, **attrs), [6, 3], **given([3], [8]))
    check(group_query(batch=1, rows=3, **attrs), [8], **given([5, 1, 9]))


def test_rotation_of_a_part() -> None:
    check(group_query(do_rotary=1, depth=32), [6, 3])
    check(group_query(**PROMPT, do_rotary=1, depth=32, rotary_interleaved=1), [5, 3])


@pytest.mark.parametrize("past", [5, 10])
@pytest.mark.parametrize("wrong", [0, 11])
def test_lengths_that_do_not_fit_are_the_hosts_error(past: int, wrong: int) -> None:
    model = group_query(past=past, total=6)
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    for session in (cpu, ours):
        with pytest.raises(FAILURES, match="out of range"):
            session.run(None, feeds | {"lengths": np.array([5, wrong - 1], np.int32)})
    check_same(ours, cpu, feeds | {"lengths": np.array([5, 0], np.int32)})


def test_what_the_host_refuses() -> None:
    """Several texts that go on by more than a row, and a total length that is not that of both."""
    for model in (group_query(rows=3), group_query(total=9)):
        feeds = random_feeds(cpu_session(model)) | {"lengths": np.array([5, 5], np.int32)}
        for session in (cpu_session(model), providers.session(model, tune="off", min_region_size=1)):
            with pytest.raises(FAILURES):
                session.run(None, feeds)


def attention(opset: int, *, mask: Any = None, keys: int = 7, **attrs: Any) -> bytes:
    shapes: dict[str, Any] = {"q": (2, H, 4, D), "k": (2, G, keys, D), "v": (2, G, keys, D), "lengths": (2,)}
    types = {"lengths": "INT64"}
    if mask is not None:
        types["mask"], shapes["mask"] = mask
    inputs = ["q", "k", "v", "mask" if mask is not None else "", "", "", "lengths"]
    return make_model(
        [helper.make_node("Attention", inputs, ["y"], **attrs)], shapes, {"y": None}, opset=opset, types=types
    )


@pytest.mark.parametrize("opset", [24, 25])
@pytest.mark.parametrize("lengths", [[7, 7], [4, 6], [1, 2], [0, 3]])
@pytest.mark.parametrize("mask", [None, ("BOOL", (4, 7)), ("FLOAT", (2, H, 4, 7))], ids=str)
def test_lengths_of_keys(opset: int, lengths: list[int], mask: Any) -> None:
    windows = [{}, {"left_window_size": 1}, {"left_window_size": 2, "right_window_size": 1}] if opset > 24 else [{}]
    for causal in (0, 1):
        for window in windows:
            model = attention(opset, mask=mask, is_causal=causal, **window)
            if not runs(model):
                pytest.skip("the runtime is older than the opset")
            ours, cpu = whole_session(model), cpu_session(model)
            check_same(ours, cpu, random_feeds(cpu) | {"lengths": np.array(lengths)})
            assert not reasons(ours)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("kind", ["FLOAT", "INT64", "BOOL"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter(mode: str, kind: str, axis: int) -> None:
    cache, update = [2, 6, 6, 4], [2, 6, 6, 4]
    update[axis] = 2
    places = ([0, 4], [1, 2], [5, 3]) if mode == "circular" else ([0, 4], [1, 2])
    for given in (*places, None):
        shapes = {"cache": cache, "update": update, **({"places": [2]} if given is not None else {})}
        node = helper.make_node("TensorScatter", list(shapes), ["y"], axis=axis, mode=mode)
        types = {"cache": kind, "update": kind, "y": kind, "places": "INT64"}
        model = make_model([node], shapes, {"y": cache}, opset=24, types=types)
        if not runs(model):
            pytest.skip("the runtime has no TensorScatter")
        ours, cpu = whole_session(model), cpu_session(model)
        feeds = random_feeds(cpu) | ({"places": np.array(given)} if given is not None else {})
        for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
            np.testing.assert_array_equal(result, reference)
        assert not reasons(ours)


@pytest.mark.parametrize(("mode", "places"), [("linear", [5, 0]), ("linear", [-1, 0]), ("circular", [-1, 0])])
def test_scattered_places_outside_are_the_hosts_error(mode: str, places: list[int]) -> None:
    shapes = {"cache": [2, 3, 6, 4], "update": [2, 3, 2, 4], "places": [2]}
    node = helper.make_node("TensorScatter", list(shapes), ["y"], mode=mode)
    model = make_model([node], shapes, {"y": shapes["cache"]}, opset=24, types={"places": "INT64"})
    if not runs(model):
        pytest.skip("the runtime has no TensorScatter")
    for session in (cpu_session(model), whole_session(model)):
        with pytest.raises(FAILURES):
            session.run(None, random_feeds(session) | {"places": np.array(places)})
