"""RotaryEmbedding of ONNX and of com.microsoft against the CPU provider's own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons, whole_session

B, H, M, D, LONGEST = 2, 3, 4, 16, 20
BOTH = [False, True]
FAILURES = (
    onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
)


def rotary(
    *,
    microsoft: bool,
    flat: bool = False,
    known: bool = True,
    partial: bool = False,
    positions: tuple[int, ...] | None = (B, M),
    **attrs: Any,
) -> bytes:
    """`known`: the tables are constants. `partial`: half of each head is turned."""
    width = D // 2 if partial else D
    if flat or partial:
        attrs["num_heads"] = H
    if partial:
        attrs["rotary_embedding_dim"] = width
    shapes: dict[str, Any] = {"x": (B, M, H * D) if flat else (B, H, M, D)}
    shape = (LONGEST, width // 2) if positions is not None else (B, M, width // 2)
    angles = np.random.default_rng(0).standard_normal(shape)
    tables = {"cosine": np.cos(angles).astype(np.float32), "sine": np.sin(angles).astype(np.float32)}
    if positions is not None:
        shapes["p"] = positions
    if not known:
        shapes |= {name: table.shape for name, table in tables.items()}
    place = "p" if positions is not None else ""
    inputs = ["x", place, "cosine", "sine"] if microsoft else ["x", "cosine", "sine", place]
    domain = {"domain": "com.microsoft"} if microsoft else {}
    node = helper.make_node("RotaryEmbedding", inputs, ["y"], **domain, **attrs)
    constants = tables if known else {}
    return make_model([node], shapes, {"y": shapes["x"]}, constants, opset=23, types={"p": "INT64"})


def check(model: bytes, positions: np.ndarray | None = None) -> None:
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    if "p" in feeds:
        random = np.random.default_rng(1).integers(0, LONGEST, feeds["p"].shape)
        feeds["p"] = random if positions is None else positions
    check_same(ours, cpu, feeds)
    assert not reasons(ours)


@pytest.mark.parametrize(("microsoft", "flat", "partial"), list(itertools.product(BOTH, repeat=3)))
@pytest.mark.parametrize("interleaved", [0, 1])
def test_positions(microsoft: bool, flat: bool, partial: bool, interleaved: int) -> None:
    check(rotary(microsoft=microsoft, flat=flat, partial=partial, interleaved=interleaved))


@pytest.mark.parametrize("microsoft", BOTH)
def test_tables_that_are_inputs(microsoft: bool) -> None:
    check(rotary(microsoft=microsoft, known=False))


@pytest.mark.parametrize("flat", BOTH)
def test_angles_by_row(flat: bool) -> None:
    check(rotary(microsoft=False, flat=flat, known=False, positions=None))


@pytest.mark.parametrize("flat", BOTH)
def test_position_of_the_first_row(flat: bool) -> None:
    check(rotary(microsoft=True, flat=flat, positions=(1,)), np.array([LONGEST - M]))


@pytest.mark.parametrize("microsoft", BOTH)
@pytest.mark.parametrize("wrong", [-1, LONGEST])
def test_positions_outside_are_the_hosts_error(microsoft: bool, wrong: int) -> None:
    model = rotary(microsoft=microsoft)
    ours, cpu = whole_session(model), cpu_session(model)
    good = random_feeds(cpu)
    bad = good | {"p": np.array([[0, 1, 2, 3], [4, 5, wrong, 6]])}
    for session in (cpu, ours):
        with pytest.raises(FAILURES, match="out of range"):
            session.run(None, bad)
    check_same(ours, cpu, good)
