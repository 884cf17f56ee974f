"""Resize by scales that no size says exactly, by sizes, and along some axes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds
from tests.providers.test_sessions import i64

COORDINATES = ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    "mode", ["linear", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"], ids=lambda mode: f"{mode}-"
)
def test_resize_by_scales_and_sizes(mode: str, coordinates: str) -> None:
    """Scales that no size says exactly, and axes: those that are not named stay."""
    attributes = {"coordinate_transformation_mode": coordinates, "mode": "linear"}
    if mode != "linear":
        attributes.update(mode="nearest", nearest_mode=mode)
    given = [
        ({}, [1, 1, 1.5, 0.5]),
        ({}, [1, 1, 1.04, 2.05]),
        ({"axes": [-1]}, [1.7]),
        ({"axes": [3, 2]}, [2, 3]),
        ({}, [1, 2, 15, 21]),
        ({"axes": [3, 2]}, [14, 5]),
    ]
    for axes, values in given:
        constant = i64(*values) if max(values) > 3 else np.array(values, np.float32)  # type: ignore[arg-type]
        inputs = ["x", "", "", "s"] if constant.dtype == np.int64 else ["x", "", "s"]
        resize = helper.make_node("Resize", inputs, ["y"], **attributes, **axes)
        model = make_model([resize], {"x": (1, 2, 10, 7)}, {"y": None}, {"s": constant})
        cpu = cpu_session(model)
        ours = providers.session(model, tune="off", min_region_size=1, never_worse=False)
        check_same(ours, cpu, random_feeds(cpu))
        # Along an axis of its own, with a scale that the sizes would not say, it is the layer that computes it.
        if mode == "linear" and axes == {"axes": [-1]} and coordinates in ("half_pixel", "align_corners"):
            assert not next(event for event in events(ours) if event["event"] == "partition")["host"]
