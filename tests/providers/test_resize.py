"""Resize by scales that no size says exactly, by sizes, and along some axes; and its last digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons, whole_session
from tests.providers.quantized import Maker
from tests.providers.test_sessions import i64

COORDINATES = ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"]
OTHERS = ["half_pixel_symmetric", "tf_crop_and_resize"]
GIVEN: list[tuple[dict[str, Any], list[float]]] = [
    ({}, [1, 1, 1.5, 0.5]),
    ({}, [1, 1, 1.04, 2.05]),
    ({"axes": [-1]}, [1.7]),
    ({"axes": [3, 2]}, [2, 3]),
    ({}, [1, 2, 15, 21]),
    ({"axes": [3, 2]}, [14, 5]),
    ({}, [1, 2, 1, 9]),
    ({}, [1, 2, 23, 1]),
    ({}, [1, 2, 10, 29]),
]


def inputs_of(m: Maker, values: list[float], axes: dict[str, Any]) -> list[str]:
    """The inputs of a Resize behind what it resizes: a region of it, and scales or sizes."""
    region = (
        [0.1, 0.2, 0.8, 0.9] if axes == {"axes": [3, 2]} else [0.1, 0.7] if axes else [0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1]
    )
    roi = m.constant(np.float32(region))
    if max(values) <= 3:
        return [roi, m.constant(np.float32(values))]
    return [roi, "", m.constant(np.int64(values))]


@pytest.mark.parametrize("coordinates", [*COORDINATES, *OTHERS])
def test_last_digits_between_grids(coordinates: str) -> None:
    """Every bit of a linear Resize before Q, so every step after it is the host's, ties included."""
    m = Maker(19)
    m.dq("b", 0.5, 100)
    m.rename("x")
    names = []
    for axes, values in GIVEN:
        named = {name: [axis % 4 for axis in given] for name, given in axes.items()}
        attributes = {"mode": "linear", "coordinate_transformation_mode": coordinates, "extrapolation_value": 2.5}
        resized = m.add("Resize", "x", *inputs_of(m, values, named), **attributes, **named)
        names += [resized, m.q(resized, 0.5, 100)]
    model = m.model({"b": (1, 2, 10, 7)}, names, {"b": "UINT8"} | dict.fromkeys(names[1::2], "UINT8"))
    ours, cpu = whole_session(model), cpu_session(model)
    feeds = random_feeds(cpu)
    for name, result, reference in zip(names, ours.run(names, feeds), cpu.run(names, feeds), strict=True):
        np.testing.assert_array_equal(result, reference, err_msg=name)
    assert not reasons(ours)


@pytest.mark.parametrize("coordinates", [*COORDINATES, "half_pixel_symmetric"])
@pytest.mark.parametrize(
    "mode", ["linear", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"], ids=lambda mode: f"{mode}-"
)
def test_resize_by_scales_and_sizes(mode: str, coordinates: str) -> None:
    """Scales that no size says exactly, and axes: those that are not named stay."""
    attributes = {"coordinate_transformation_mode": coordinates, "mode": "linear"}
    if mode != "linear":
        attributes.update(mode="nearest", nearest_mode=mode)
    for axes, values in GIVEN:
        constant = i64(*values) if max(values) > 3 else np.array(values, np.float32)  # type: ignore[arg-type]
        inputs = ["x", "", "", "s"] if constant.dtype == np.int64 else ["x", "", "s"]
        resize = helper.make_node("Resize", inputs, ["y"], **attributes, **axes)
        model = make_model([resize], {"x": (1, 2, 10, 7)}, {"y": None}, {"s": constant})
        cpu = cpu_session(model)
        ours = providers.session(model, tune="off", min_region_size=1, never_worse=False)
        check_same(ours, cpu, random_feeds(cpu))
        assert not next(event for event in events(ours) if event["event"] == "partition")["host"]


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize(
    ("coordinates", "size", "scale"), [("half_pixel", 16, 1.3), ("asymmetric", 7, 8 / 7), ("asymmetric", 7, 2 / 7)]
)
def test_positions_all_but_half_way(coordinates: str, size: int, scale: float, rounding: str, quantized: bool) -> None:
    """Which pixel is the nearest is the host's own choice."""
    m = Maker(19)
    x = m.q(m.add("Relu", "x"), 0.02, 10) if quantized else m.add("Relu", "x")
    scales = m.constant(np.float32([1, 1, 1, scale]))
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    y = m.add("Resize", x, "", scales, mode="nearest", **attributes)
    m.dq(y, 0.02, 10) if quantized else m.add("Relu", y)
    m.rename("y")
    model = m.model({"x": (1, 1, 1, size)}, ["y"])
    ours = providers.session(model, tune="off", min_region_size=1, never_worse=False)
    feeds = {"x": np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, 1, size) / 5}
    np.testing.assert_array_equal(ours.run(None, feeds)[0], cpu_session(model).run(None, feeds)[0])


@pytest.mark.parametrize("rounding", ["floor", "round_prefer_floor"])
@pytest.mark.parametrize("scales", [[1, 1.2, 2, 2], [1.4, 1, 2, 2]])
def test_scales_that_leave_batch_and_channels_as_many(scales: list[float], rounding: str) -> None:
    """They are resampled all the same."""
    m = Maker(19)
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    y = m.add("Resize", m.add("Relu", "x"), "", m.constant(np.float32(scales)), mode="nearest", **attributes)
    m.add("Relu", y)
    m.rename("y")
    model = m.model({"x": (2, 4, 5, 6)}, ["y"])
    ours, cpu = providers.session(model, tune="off", min_region_size=1, never_worse=False), cpu_session(model)
    feeds = random_feeds(cpu)
    np.testing.assert_array_equal(ours.run(None, feeds)[0], cpu.run(None, feeds)[0])
