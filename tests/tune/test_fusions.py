"""Fusions: candidates that compute several layers at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C


def inverted_residual(size: int = 20, stride: int = 1, tap: bool = False) -> softneuro.Graph:
    """1x1, depthwise, 1x1 with a residual where sizes allow; `tap` makes the first stage's result an output too."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> dict[str, Any]:
        return {"weight": rng.standard_normal(shape, dtype=np.float32) * 0.2}

    graph = softneuro.Graph()
    x = graph.input("x", (1, 16, size, size))
    up = graph.add("conv2d", [x], weights=weights(72, 16, 1, 1), post={"activation": "relu"}, name="up")
    mid = graph.add(
        "conv2d",
        [up],
        weights=weights(72, 1, 3, 3),
        stride=[stride] * 2,
        padding=[1] * 4,
        groups=72,
        post={"activation": "clamp", "a": 0.0, "b": 6.0},
        name="mid",
    )
    inputs = [mid, x] if stride == 1 else [mid]
    post = {"residual": True} if stride == 1 else {}
    graph.output(graph.add("conv2d", inputs, weights=weights(16, 72, 1, 1), post=post, name="down"))
    if tap:
        graph.output(up)
    return graph


ISA = _C.available_isas()[0]
BLOCK = {"avx512": 16, "avx2": 8, "scalar": 4}[ISA]
FUSED = f"depthwise_block/cpu:float32:nchw{BLOCK}c/bands_{ISA}{{rows=4,expand=2,project=1}}"


def own_routines(graph: softneuro.Graph) -> list[str]:
    plan = _C.tune(graph, _C.parse_options({"tune": "off"}), 1)
    return [layer.descriptor for layer in plan.layers]


def agrees(graph: softneuro.Graph, net: softneuro.Net) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(graph.input_shapes[0], dtype=np.float32)
    for actual, expected in zip(net.run([x]), graph.reference([x]), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-4)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_net_of_each_fusion(stride: int) -> None:
    graph = inverted_residual(stride=stride)
    up, _, down = own_routines(graph)
    for descriptors in (["", "", FUSED], [up, "", FUSED], ["", FUSED, down]):
        net = softneuro.Net(graph, descriptors, threads=2)
        agrees(graph, net)
        assert sum(step[0] >= 0 for step in net.profile([np.zeros(graph.input_shapes[0], np.float32)], 1)) == sum(
            descriptor != "" for descriptor in descriptors
        )


def test_what_is_no_fusion_is_refused() -> None:
    graph = inverted_residual()
    up, mid, down = own_routines(graph)
    with pytest.raises(softneuro.Error, match=r"'mid'.*no routine was assigned"):
        softneuro.Net(graph, [up, "", down])
    with pytest.raises(softneuro.Error, match="no depthwise_block ends here"):
        softneuro.Net(graph, ["", mid, FUSED])
    with pytest.raises(softneuro.Error, match="no depthwise_block ends here"):
        softneuro.Net(graph, [FUSED, mid, down])
    # The first stage's result is wanted outside: it cannot be inside a fusion.
    tapped = inverted_residual(tap=True)
    with pytest.raises(softneuro.Error, match="no routine was assigned"):
        softneuro.Net(tapped, ["", "", FUSED])
    agrees(tapped, softneuro.Net(tapped, [up, "", FUSED]))


def test_a_plan_with_a_fusion_is_loaded_and_carried_over(tmp_path: Path) -> None:
    graph = inverted_residual(size=20)
    path = tmp_path / "plan"
    options = _C.parse_options({"tune": "off", "plan": str(path)})
    own = _C.tune(graph, options, 1)
    assert all(layer.descriptor for layer in own.layers)  # without measurements nothing is fused
    descriptor = next(d for d in _C.testing.accepting(*block_problem(graph)) if f"nchw{BLOCK}c/bands" in d)
    blocked = f"cpu:float32:nchw{BLOCK}c"
    file = _C.PlanFile.load(str(path))
    steps = [_C.PlanStep(i, "conv2d", descriptor if i == 2 else "", 1e-6) for i in range(3)]
    adapts = [_C.PlanAdapt(0, "cpu:float32:nchw", blocked, 0), _C.PlanAdapt(3, blocked, "cpu:float32:nchw", 0)]
    file.set(_C.PlanSection(file.plans[0].key, steps, adapts, 1e-6, 1e-6))
    file.save(str(path))

    loaded = _C.tune(graph, options, 1)
    assert [layer.descriptor for layer in loaded.layers] == ["", "", descriptor]
    agrees(graph, softneuro.Net(graph, loaded))
    larger = inverted_residual(size=26)
    net = softneuro.Net(larger, loaded)
    agrees(larger, net)
    run = net.profile([np.zeros(larger.input_shapes[0], np.float32)], 1)
    assert [step[2].split("/")[0] for step in run if step[0] >= 0] == ["depthwise_block"]


def block_problem(graph: softneuro.Graph) -> tuple[str, dict[str, Any], dict[str, Any], list[tuple[int, ...]]]:
    """A problem like the graph's fusion, to ask for the params that its routines offer."""
    attrs = {"padding": [1] * 4, "expand_function": "relu", "depthwise_function": "clamp", "depthwise_b": 6.0}
    shapes = {"expand_weight": (72, 16, 1, 1), "depthwise_weight": (72, 1, 3, 3), "project_weight": (16, 72, 1, 1)}
    weights = {role: np.zeros(shape, np.float32) for role, shape in shapes.items()}
    return "depthwise_block", attrs, weights, [graph.input_shapes[0]]


def test_tuning_considers_fusions() -> None:
    """They are candidates in addition, and the plan is never dearer than the layers' own routines."""
    graph = inverted_residual()
    plan = _C.tune(graph, _C.parse_options({"tune": "profile", "time_budget_s": "5"}), 1)
    agrees(graph, softneuro.Net(graph, plan))
    assert plan.lower_bound_s <= plan.predicted_s
    for layer in plan.layers:
        assert layer.descriptor or layer.seconds == 0


def squeeze_excite(pool: str = "avg", tap: str = "", swap: bool = False, other: bool = False) -> softneuro.Graph:
    """Squeeze and excite with a residual; `tap` makes a layer's result an output, `other` scales another image."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> dict[str, Any]:
        values = {"weight": rng.standard_normal(shape, dtype=np.float32) * 0.2}
        return {**values, "bias": rng.standard_normal(shape[0], dtype=np.float32)}

    graph = softneuro.Graph()
    x = graph.input("x", (1, 72, 28, 28))
    image = graph.add("activation", [x], function="relu", name="image")
    mean = graph.add("adaptive_pool2d", [image], function=pool, output_size=[1, 1], name="pool")
    hidden = graph.add("conv2d", [mean], weights=weights(24, 72, 1, 1), post={"activation": "relu"}, name="squeeze")
    gate = graph.add("conv2d", [hidden], weights=weights(72, 24, 1, 1), post={"activation": "sigmoid"}, name="excite")
    pair = [gate, x if other else image]
    post = {"residual": True, "activation": "relu"}
    graph.output(graph.add("binary", [*(pair[::-1] if swap else pair), x], function="mul", post=post, name="scale"))
    if tap:
        graph.output({"pool": mean, "squeeze": hidden, "excite": gate}[tap])
    return graph


GATED = f"squeeze_excite/cpu:float32:nchw{BLOCK}c/fused_{ISA}"


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_net_of_squeeze_and_excite(swap: bool, threads: int) -> None:
    graph = squeeze_excite(swap=swap)
    image, *_ = own_routines(graph)
    net = softneuro.Net(graph, [image, "", "", "", GATED], threads=threads)
    agrees(graph, net)
    assert sum(step[0] >= 0 for step in net.profile([np.zeros(graph.input_shapes[0], np.float32)], 1)) == 2


@pytest.mark.parametrize(
    "miss", [{"pool": "max"}, {"other": True}, {"tap": "pool"}, {"tap": "squeeze"}, {"tap": "excite"}]
)
def test_what_is_no_squeeze_and_excite(miss: dict[str, Any]) -> None:
    graph = squeeze_excite(**miss)
    image, *_ = own_routines(graph)
    with pytest.raises(softneuro.Error, match=r"no routine was assigned|no squeeze_excite ends here"):
        softneuro.Net(graph, [image, "", "", "", GATED])


def conv_pool(taps: str = "", residual: bool = False, dilation: int = 1) -> softneuro.Graph:
    """The first layers of a net; `taps` makes the convolution's result an output, or feeds it to another layer."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((40, 3, 3, 3), dtype=np.float32)
    graph = softneuro.Graph()
    x = graph.input("x", (2, 3, 61, 47))
    inputs, post = [x], {"activation": "relu"}
    if residual:
        inputs, post = [x, graph.input("r", (2, 40, 31, 24))], {"activation": "relu", "residual": True}
    conv = graph.add(
        "conv2d", inputs, weights={"weight": weight}, stride=[2, 2], padding=[1] * 4, post=post, name="conv"
    )
    window = {"kernel": [3, 3], "stride": [2, 2], "padding": [1] * 4, "dilation": [dilation] * 2}
    graph.output(graph.add("pool2d", [conv], function="max", **window, name="pool"))
    if taps == "output":
        graph.output(conv)
    elif taps == "layer":
        graph.output(graph.add("activation", [conv], function="tanh"))
    return graph


def pooled(algorithm: str) -> str:
    """That algorithm's routine, with several bands to an image."""
    attrs = {"stride": [2, 2], "padding": [1] * 4, "pool_function": "max"}
    attrs |= {"pool_kernel": [3, 3], "pool_stride": [2, 2], "pool_padding": [1] * 4}
    weights = {"conv_weight": np.zeros((40, 3, 3, 3), np.float32)}
    accepted = _C.testing.accepting("conv_pool", attrs, weights, [(2, 3, 61, 47)])
    descriptor = next(d for d in accepted if f"/{algorithm}_bands_{ISA}" in d)
    return re.sub("band=[0-9]+", "band=3", descriptor)


@pytest.mark.parametrize("algorithm", ["first", "first_winograd", "winograd"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_net_of_convolution_and_pooling(algorithm: str, threads: int) -> None:
    if algorithm == "first_winograd" and ISA == "scalar":
        pytest.skip("has no transform at this level")
    graph = conv_pool()
    net = softneuro.Net(graph, ["", pooled(algorithm)], threads=threads)
    agrees(graph, net)
    assert sum(step[0] >= 0 for step in net.profile([np.zeros(graph.input_shapes[0], np.float32)], 1)) == 1


def test_pooling_in_bands_keeps_nan() -> None:
    """The exact kernel has NaN where the reference has it and nowhere else."""
    graph = conv_pool()
    x = np.random.default_rng(1).standard_normal(graph.input_shapes[0], dtype=np.float32)
    x[0, 1, 30, 20] = np.nan
    x[1, 2, 7, 46] = np.inf
    actual, expected = softneuro.Net(graph, ["", pooled("first")], threads=2).run([x])[0], graph.reference([x])[0]
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    assert np.isnan(actual).any()


@pytest.mark.parametrize("miss", [{"taps": "output"}, {"taps": "layer"}, {"residual": True}])
def test_what_is_no_convolution_and_pooling(miss: dict[str, Any]) -> None:
    graph = conv_pool(**miss)
    descriptors = ["", pooled("first"), *[""] * (miss.get("taps") == "layer")]
    with pytest.raises(softneuro.Error, match=r"no routine was assigned|no conv_pool ends here"):
        softneuro.Net(graph, descriptors)


def test_a_dilated_window_is_declined() -> None:
    graph = conv_pool(dilation=2)
    with pytest.raises(softneuro.Error, match="dilated window"):
        softneuro.Net(graph, ["", pooled("first")])


def first_block(project: bool = True, tap: bool = False, residual: bool = False, groups: int = 1) -> softneuro.Graph:
    """How mobile networks begin: a convolution, a depthwise one and a 1x1 one. `tap`: the first is an output, too."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> dict[str, Any]:
        values = {"weight": rng.standard_normal(shape, dtype=np.float32) * 0.3}
        return {**values, "bias": rng.standard_normal(shape[0], dtype=np.float32)}

    graph = softneuro.Graph()
    x = graph.input("x", (2, 4, 61, 47))
    inputs = [x, graph.input("r", (2, 40, 31, 24))] if residual else [x]
    window = {"stride": [2, 2], "padding": [1] * 4}
    post = {"activation": "relu", "residual": residual}
    conv = graph.add(
        "conv2d", inputs, weights=weights(40, 4 // groups, 3, 3), post=post, groups=groups, name="conv", **window
    )
    clamp = {"activation": "clamp", "a": 0.0, "b": 6.0}
    mid = graph.add("conv2d", [conv], weights=weights(40, 1, 3, 3), groups=40, post=clamp, name="mid", padding=[1] * 4)
    graph.output(graph.add("conv2d", [mid], weights=weights(24, 40, 1, 1), name="down") if project else mid)
    if tap:
        graph.output(conv)
    return graph


def filtered(project: bool = True) -> str:
    """The routine that takes such a block, with several bands to an image."""
    attrs = {"padding": [1] * 4, "expand_stride": [2, 2], "expand_padding": [1] * 4}
    shapes = {"expand_weight": (40, 4, 3, 3), "depthwise_weight": (40, 1, 3, 3), "project_weight": (24, 40, 1, 1)}
    if not project:
        del shapes["project_weight"]
    weights = {role: np.zeros(shape, np.float32) for role, shape in shapes.items()}
    accepted = _C.testing.accepting("depthwise_block", attrs, weights, [(2, 4, 61, 47)])
    return re.sub("band=[0-9]+", "band=5", next(d for d in accepted if f"/first_bands_{ISA}" in d))


@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_net_that_begins_with_a_fusion(project: bool, threads: int) -> None:
    graph = first_block(project)
    net = softneuro.Net(graph, ["", *[""] * project, filtered(project)], threads=threads)
    agrees(graph, net)
    assert sum(step[0] >= 0 for step in net.profile([np.zeros(graph.input_shapes[0], np.float32)], 1)) == 1


@pytest.mark.parametrize("miss", [{"tap": True}, {"residual": True}, {"groups": 2}])
def test_what_no_fusion_begins_with(miss: dict[str, Any]) -> None:
    """A first convolution whose result is wanted outside, that adds another blob, or that has groups."""
    graph = first_block(**miss)
    conv, *_ = own_routines(graph)
    with pytest.raises(softneuro.Error, match="no routine was assigned"):
        softneuro.Net(graph, ["", "", filtered()])
    with pytest.raises(softneuro.Error, match="no first stage"):
        softneuro.Net(graph, [conv, "", filtered()])


def test_bands_of_no_rows_are_refused() -> None:
    graph = first_block()
    with pytest.raises(softneuro.Error, match="band must be positive, not 0"):
        softneuro.Net(graph, ["", "", filtered().replace("band=5", "band=0")])
    with pytest.raises(softneuro.Error, match="first stage is no 1x1 convolution"):
        softneuro.Net(graph, ["", "", FUSED])
