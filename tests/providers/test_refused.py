"""What the CPU provider refuses is refused, though a layer could compute it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds
from tests.providers.test_sessions import f32

SHAPE = (1, 4, 9, 8)
W = f32(4, 4, 3, 3)


def case(op: str, *constants: np.ndarray, outputs: int = 1, opset: int = 22, **attributes: Any) -> Any:
    text = "-".join(f"{name}={value}" for name, value in attributes.items()).replace(" ", "")
    return pytest.param(op, constants, outputs, opset, attributes, id=f"{op}{opset}-{text}")


REFUSED = [
    case("Conv", W, auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
    case("Conv", W, auto_pad="VALID", pads=[0, 0, 0, 0]),
    case("Conv", W, auto_pad="SAME_LOWER", dilations=[2, 2]),
    case("Conv", W, auto_pad="SAME_UPPER", kernel_shape=[2, 2]),
    case("ConvTranspose", W, auto_pad="SAME_UPPER", kernel_shape=[2, 2]),
    case("ConvTranspose", W, dilations=[2, 2], output_padding=[1, 1]),
    case("GroupNormalization", f32(2), f32(2), num_groups=2, opset=21),
    case("GroupNormalization", f32(4), f32(4), num_groups=2, opset=18),
    case("GroupNormalization", f32(4), f32(2), num_groups=2, opset=21),
    case("Split", axis=2, outputs=2, opset=18),
    case("Split", axis=2, outputs=2, opset=13),
    case("Split", axis=2, outputs=2, num_outputs=3, opset=18),
]


def outcome(session: Any, feeds: dict[str, np.ndarray]) -> str:
    """Why it cannot run, empty if it can."""
    try:
        session().run(None, feeds)
    except Exception as error:
        return str(error)
    return ""


def open_model(op: str, constants: Any, outputs: int, opset: int, attributes: Any, fixed: bool) -> bytes:
    named = {f"c{i}": value for i, value in enumerate(constants)}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, ["x", *named], results, **attributes)
    return make_model([node], {"x": SHAPE if fixed else ["n", 4, "h", "w"]}, dict.fromkeys(results), named, opset)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("op", "constants", "outputs", "opset", "attributes"), REFUSED)
def test_refused(op: str, constants: Any, outputs: int, opset: int, attributes: Any, fixed: bool) -> None:
    try:
        model = open_model(op, constants, outputs, opset, attributes, fixed)
    except Exception:
        pytest.skip("onnx itself refuses it")
    feeds = {"x": f32(*SHAPE)}
    theirs = outcome(lambda: cpu_session(model), feeds)
    ours = outcome(lambda: providers.session(model, tune="off", min_region_size=1, never_worse=False), feeds)
    assert theirs
    assert ours


def test_addend_of_a_product() -> None:
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"])
    model = make_model([node], {"x": ("n", 8)}, {"y": None}, {"w": f32(8, 5), "c": f32(1, 1, 5)})
    feeds = {"x": f32(9, 8)}
    assert outcome(lambda: cpu_session(model), feeds)
    assert outcome(lambda: providers.session(model, tune="off", min_region_size=1, never_worse=False), feeds)


def test_poolings_of_dilated_windows() -> None:
    """The CPU provider pads less for them than for a Conv."""
    node = helper.make_node("MaxPool", ["x"], ["y"], auto_pad="SAME_UPPER", kernel_shape=[3, 3], dilations=[2, 2])
    model = make_model([node], {"x": SHAPE}, {"y": None})
    cpu = cpu_session(model)
    ours = providers.session(model, tune="off", min_region_size=1, never_worse=False)
    check_same(ours, cpu, random_feeds(cpu))
