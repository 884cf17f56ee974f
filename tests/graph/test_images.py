"""Images of bytes: what scales them is found, and computed with the convolution that follows, a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.graph.networks import Network, assert_close
from tests.tune.records import costs

ISA = _C.available_isas()[0]
BLOCK = {"avx512": 16, "avx2": 8, "scalar": 4}[ISA]
TURNED = "transpose/cpu:uint8:nchw->cpu:uint8:nhwc/view"
MEAN, DEVIATION = np.float32([[[0.485]], [[0.456]], [[0.406]]]), np.float32([[[0.229]], [[0.224]], [[0.225]]])


def divided(net: Network, x: int) -> int:
    """As torchvision has it."""
    return net.binary("div", net.binary("sub", net.binary("div", x, 255.0), MEAN), DEVIATION)


def multiplied(net: Network, x: int) -> int:
    """With constants of another rank, and from the right."""
    return net.binary("sub", net.binary("mul", x, (1 / 57 / DEVIATION)[np.newaxis]), 2.5, reversed=1)


CHAINS: dict[str, Callable[[Network, int], int]] = {
    "divided": divided,
    "multiplied": multiplied,
    "normalised": lambda net, x: net.batch_norm(x),
    "as they are": lambda _net, x: x,
}


def image_net(
    scaled: Callable[[Network, int], int] = divided,
    last: bool = False,
    shape: tuple[int, int, int, int] = (2, 3, 61, 47),
    kind: str = "uint8",
    out: bool = True,
    **conv: Any,
) -> Network:
    """Bytes, channels last or not, through a chain and a convolution with padding."""
    net = Network()
    n, c, h, w = shape
    sizes = (n, h, w, c) if last else shape
    x = net.graph.input("x", sizes, kind)
    net.arrays = [net.rng.integers(0, 256 if kind == "uint8" else 128, sizes).astype(kind)]
    if last:
        x = net.add("transpose", x, perm=[0, 3, 1, 2])
    x = scaled(net, net.add("cast", x))
    window = {"stride": [2, 2], "padding": [1, 2, 3, 0], **conv}
    y = net.conv(x, 40, post={"activation": "relu"}, name="conv", **window)
    if out:
        net.graph.output(y)
    return net


def routine(layout: str, algorithm: str = "first", shape: tuple[int, ...] = (2, 3, 61, 47)) -> str:
    """The routine with that algorithm, with bands of a few rows."""
    attrs = {"stride": [2, 2], "padding": [1, 2, 3, 0]}
    weights = {"conv_weight": np.zeros((40, shape[1], 3, 3), np.float32), "values": np.zeros((shape[1], 256))}
    accepted = _C.testing.accepting("image_conv", attrs, weights, [shape], {}, 1, ["uint8"])
    start = f"image_conv/cpu:uint8:{layout}->"
    found = next(d for d in accepted if d.startswith(start) and f"/{algorithm}_{ISA}{{" in d)
    return found.split("{", maxsplit=1)[0] + "{rows=2}"


def fused(net: Network, layout: str, algorithm: str = "first", threads: int = 1) -> softneuro.Net:
    """With all from the cast on in one routine."""
    types = net.types()
    descriptors = [TURNED if kind == "transpose" else "" for kind in types]
    descriptors[-1] = routine(layout, algorithm)
    return softneuro.Net(net.graph, descriptors, threads=threads)


@pytest.mark.parametrize("scaled", CHAINS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_bytes_are_scaled_a_few_rows_at_a_time(scaled: str, last: bool, threads: int) -> None:
    """With zeros around what is scaled, not around the bytes: the reference computes layer by layer."""
    net = image_net(CHAINS[scaled], last)
    expected = net.reference()[0]
    net.graph.optimize()
    whole = fused(net, "nhwc" if last else "nchw", threads=threads)
    got = whole.run(net.arrays)[0]
    assert_close(got, expected, 1e-6)
    assert np.array_equal(got, whole.run(net.arrays)[0])


# There is no scalar kernel of Winograd's for first layers.
@pytest.mark.parametrize("algorithm", ["first"] if ISA == "scalar" else ["first", "first_winograd"])
@pytest.mark.parametrize("last", [False, True])
def test_no_image_of_reals_is_in_memory(algorithm: str, last: bool) -> None:
    net = image_net(last=last, shape=(1, 3, 401, 303))
    expected = net.reference()[0]
    net.graph.optimize()
    whole = fused(net, "nhwc" if last else "nchw", algorithm)
    assert_close(whole.run(net.arrays)[0], expected, 1e-4)
    first, adapt = (step[2] for step in whole.profile(net.arrays, 1))
    assert first.startswith(f"image_conv/cpu:uint8:{'nhwc' if last else 'nchw'}->")
    assert adapt.startswith(f"adapt/cpu:float32:nchw{BLOCK}c->cpu:float32:nchw/")
    blocked = 4 * expected.size // 40 * -(-40 // BLOCK) * BLOCK
    assert whole.stats["blob_bytes"] == blocked + 4 * expected.size
    if algorithm == "first":  # which needs little scratch beside some rows of reals
        assert whole.stats["arena_bytes"] < blocked + 4 * net.arrays[0].size / 2


def test_rows_beside_the_image() -> None:
    """Bands whose rows lie in the padding only, or partly."""
    net = image_net(shape=(1, 3, 5, 9), stride=[1, 1], padding=[20, 1, 20, 1])
    expected = net.reference()[0]
    net.graph.optimize()
    attrs = {"padding": [20, 1, 20, 1]}
    weights = {"conv_weight": np.zeros((40, 3, 3, 3), np.float32), "values": np.zeros((3, 256))}
    accepted = _C.testing.accepting("image_conv", attrs, weights, [(1, 3, 5, 9)], {}, 1, ["uint8"])
    algorithms = {d.split("{")[0] for d in accepted if ":nchw->" in d}
    assert algorithms
    for algorithm in algorithms:
        descriptors = ["", "", "", "", f"{algorithm}{{rows=4}}"]
        assert_close(softneuro.Net(net.graph, descriptors).run(net.arrays)[0], expected, 1e-4)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("threads", [1, 3])
def test_pooled_at_once(layout: str, threads: int) -> None:
    """From bytes to what a pooling leaves of the convolution, in one step."""
    net = image_net(last=layout == "nhwc", out=False)
    window = {"kernel": [3, 3], "stride": [2, 2], "padding": [1] * 4}
    net.graph.output(net.add("pool2d", len(net.types()), function="max", **window))
    expected = net.reference()[0]
    net.graph.optimize()
    attrs = {"stride": [2, 2], "padding": [1, 2, 3, 0], "pool_function": "max"}
    attrs |= {f"pool_{name}": value for name, value in window.items()}
    weights = {"conv_weight": np.zeros((40, 3, 3, 3), np.float32), "values": np.zeros((3, 256))}
    accepted = _C.testing.accepting("conv_pool", attrs, weights, [(2, 3, 61, 47)], {}, 1, ["uint8"])
    assert not any(d.startswith("conv_pool/cpu:float32:") for d in accepted)  # which take a conv2d
    start = f"conv_pool/cpu:uint8:{layout}->"
    found = next(d for d in accepted if d.startswith(start) and f"/first_bands_{ISA}{{" in d)
    descriptors = [TURNED if kind == "transpose" else "" for kind in net.types()]
    descriptors[-1] = found.split("{", maxsplit=1)[0] + "{band=3,rows=2}"
    whole = softneuro.Net(net.graph, descriptors, threads=threads)
    assert_close(whole.run(net.arrays)[0], expected, 1e-6)
    assert [step[2].split("/")[0] for step in whole.profile(net.arrays, 1)] == ["conv_pool", "adapt"]
    # The convolution and the pooling alone are another fusion.
    own = {"transpose": TURNED, "cast": "cast/cpu:float32:nchw/view", "conv2d": "", "pool2d": descriptors[-1]}
    own["binary"] = f"binary/cpu:float32:nchw/vector_{ISA}"
    with pytest.raises(softneuro.Error, match="no conversions lead from cpu:float32:nchw to cpu:uint8"):
        softneuro.Net(net.graph, [own[kind] for kind in net.types()])


@pytest.mark.parametrize("project", [True, False])
def test_filtered_at_once(project: bool) -> None:
    """How mobile networks begin."""
    net = image_net(last=True, out=False)
    y = net.conv(len(net.types()), 40, groups=40, padding=[1] * 4, post={"activation": "relu"})
    net.graph.output(net.conv(y, 24, 1) if project else y)
    expected = net.reference()[0]
    net.graph.optimize()
    attrs = {"padding": [1] * 4, "expand_stride": [2, 2], "expand_padding": [1, 2, 3, 0]}
    shapes = {"expand_weight": (40, 3, 3, 3), "depthwise_weight": (40, 1, 3, 3), "values": (3, 256)}
    weights = {role: np.zeros(shape, np.float32) for role, shape in shapes.items()}
    if project:
        weights["project_weight"] = np.zeros((24, 40, 1, 1), np.float32)
    accepted = _C.testing.accepting("depthwise_block", attrs, weights, [(2, 3, 61, 47)], {}, 1, ["uint8"])
    assert not any(d.startswith("depthwise_block/cpu:float32:") for d in accepted)  # which begin with a conv2d
    found = next(d for d in accepted if ":nhwc->" in d and f"/first_bands_{ISA}{{" in d)
    descriptors = [TURNED if kind == "transpose" else "" for kind in net.types()]
    descriptors[-1] = found.split("{", maxsplit=1)[0] + "{band=5,rows=2}"
    whole = softneuro.Net(net.graph, descriptors, threads=2)
    assert_close(whole.run(net.arrays)[0], expected, 1e-6)
    assert [step[2].split("/")[0] for step in whole.profile(net.arrays, 1)] == ["depthwise_block", "adapt"]


def test_a_deviation_of_zero() -> None:
    """Infinite where the layers' own arithmetic is, and NaN where that is."""
    net = image_net(lambda net, x: net.binary("div", net.binary("sub", x, 7.0), np.float32([[[1]], [[0]], [[2]]])))
    with np.errstate(all="ignore"):
        expected = net.reference()[0]
    net.graph.optimize()
    got = fused(net, "nchw").run(net.arrays)[0]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
    assert np.isinf(got).any()


def tapped(net: Network, x: int) -> int:
    y = divided(net, x)
    net.graph.output(y)
    return y


def seen_twice(net: Network, x: int) -> int:
    y = divided(net, x)
    net.graph.output(net.act(y, "tanh"))
    return y


NOT_CHAINS: dict[str, Callable[[Network, int], int]] = {
    "an output": tapped,
    "read by another layer": seen_twice,
    "by pixel": lambda net, x: net.binary("mul", x, net.values(61, 47)),
    "no line": lambda net, x: net.act(x, "tanh"),
    "divides by bytes": lambda net, x: net.binary("div", x, 3.0, reversed=1),
}


@pytest.mark.parametrize("scaled", NOT_CHAINS)
def test_what_is_no_scaled_image(scaled: str) -> None:
    net = image_net(NOT_CHAINS[scaled])
    types = net.types()
    descriptors = [""] * len(types)
    descriptors[types.index("conv2d")] = routine("nchw")
    with pytest.raises(softneuro.Error, match=r"no image_conv ends here|no routine was assigned"):
        softneuro.Net(net.graph, descriptors)


def test_integers_that_are_no_bytes() -> None:
    net = image_net(kind="int8")
    with pytest.raises(softneuro.Error, match="no image_conv ends here"):
        softneuro.Net(net.graph, [*[""] * (len(net.types()) - 1), routine("nchw")])


def test_an_image_of_another_rank_or_type() -> None:
    """Names the layer, or what is given and what is wanted."""
    net = image_net()
    graph = softneuro.Graph()
    x = graph.add("cast", [graph.input("x", (3, 61, 47), "uint8")])
    with pytest.raises(softneuro.Error, match=r"'first'.*4 axes, not shape 3x61x47"):
        graph.add("conv2d", [x], weights={"weight": net.values(8, 3, 3, 3)}, name="first")
    whole = fused(net, "nchw")
    with pytest.raises(softneuro.Error, match=r"3x61x47.*2x3x61x47|2x3x61x47.*3x61x47"):
        whole.run([net.arrays[0][0]])
    with pytest.raises(softneuro.Error, match=r"float32.*uint8"):
        whole.run([net.arrays[0].astype(np.float32)])


def test_tuning_considers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a candidate beside the layers' own routines: it is taken where it costs less, and only there."""
    net = image_net(last=True)
    expected = net.reference()[0]
    net.graph.optimize()
    options = {mode: _C.parse_options({"max_error": "1e-4", "tune": mode}) for mode in ("profile", "cached")}
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "measured"))
    plan = _C.tune(net.graph, options["profile"], 1)
    assert_close(softneuro.Net(net.graph, plan).run(net.arrays)[0], expected, 1e-4)
    measured = [cost for cost in costs(tmp_path / "measured") if "graph" not in cost.signature]
    assert any(cost.descriptor.startswith("image_conv/cpu:uint8:nhwc->") for cost in measured)
    for dearer in (1, 99):
        monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / f"made_up_{dearer}"))
        for cost in measured:
            cost.make_up(dearer if cost.descriptor.startswith("image_conv/") else 2)
        layers = _C.tune(net.graph, options["cached"], 1).layers
        assert layers[-1].descriptor.startswith("image_conv/cpu:uint8:nhwc->") == (dearer == 1)


def test_transposes_move_to_the_bytes() -> None:
    """Past constants, which are turned with them."""
    net = Network()
    x = net.graph.input("x", (2, 9, 7, 3), "uint8")
    net.arrays = [net.rng.integers(0, 256, (2, 9, 7, 3)).astype(np.uint8)]
    x = net.binary("sub", net.binary("div", net.add("cast", x), 255.0), np.float32([0.5, 0.4, 0.3]))
    x = net.binary("div", x, np.float32([[[0.2, 0.3, 0.4]]]))
    net.optimized(net.conv(net.add("transpose", x, perm=[0, 3, 1, 2]), 8))
    assert net.types() == ["transpose", "cast", "binary", "binary", "binary", "conv2d"]


@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_transposes_that_stay(kind: str) -> None:
    """Integers that are no bytes, and bytes whose reals are read elsewhere, too."""
    net = Network()
    x = net.graph.input("x", (2, 9, 7, 3), kind)
    net.arrays = [net.rng.integers(0, 256, (2, 9, 7, 3)).astype(kind)]
    x = net.add("cast", x)
    outputs = [net.add("transpose", x, perm=[0, 3, 1, 2])] + [net.act(x, "tanh")] * (kind == "uint8")
    net.optimized(*outputs)
    assert net.types()[:2] == ["cast", "transpose"]
