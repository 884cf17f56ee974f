"""Normalisations and activations of transformers: spelt out, and as the runtime's own optimiser writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons, whole_session

RANDOM = np.random.default_rng(1)
WIDTH = 24


def f32(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def layers(session: Any) -> list[str]:
    """Types of the layers that nets have."""
    prepared = [event for event in events(session) if event["event"] == "prepared"]
    return [layer["descriptor"].split("/")[0] for event in prepared for layer in event.get("layers", [])]


def check(model: bytes, sizes: dict[str, int] | None = None, bound: float = 1e-5) -> list[str]:
    """Every node runs through the provider, as on the CPU provider; returns the layers."""
    ours, cpu = whole_session(model), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu, sizes), bound)
    assert not reasons(ours)
    return layers(ours)


CONSTANTS = {
    "two": np.float32(2), "half": np.float32(0.5), "one": np.float32(1), "minus": np.float32(-0.5),
    "eps": np.float32(1e-5), "last": np.array([-1], np.int64), "w": f32(WIDTH), "b": f32(WIDTH),
    "sigma": np.float32(1.702), "three": np.float32(3), "cube": np.float32(0.044715),
    "root": np.float32(np.sqrt(2 / np.pi)),
}  # fmt: skip


def spelt(steps: str, outputs: str = "y", opset: int = 18) -> bytes:
    """Nodes "op inputs -> output" behind a layer that takes nothing in."""
    nodes = [helper.make_node("Elu", ["in"], ["x"])]
    for step in steps.split(", "):
        op, *inputs, _, output = step.split()
        if op.startswith("ReduceMean") and opset < 18:
            nodes.append(helper.make_node(op, inputs, [output], axes=[-1], keepdims=1))
        else:
            nodes.append(helper.make_node(op, [*inputs, "last"] if op == "ReduceMean" else inputs, [output]))
    used = {name for node in nodes for name in node.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in used}
    return make_model(nodes, {"in": ["n", 5, WIDTH]}, dict.fromkeys(outputs.split()), constants, opset)


MEAN = "ReduceMean x -> u, Sub x u -> d, Pow d two -> s, ReduceMean s -> v, Add v eps -> e, Sqrt e -> r"
SQUARE = "Mul x x -> s, ReduceMean s -> v, Add eps v -> e"
NORMS = {
    "layer norm": ("layer_norm", f"{MEAN}, Div d r -> n, Mul n w -> m, Add m b -> y"),
    "layer norm, subtracted twice": (
        "layer_norm",
        f"{MEAN}, Sub x u -> t, Div t r -> n, Mul w n -> m, Add b m -> y",
    ),
    "layer norm alone": ("layer_norm", f"{MEAN}, Reciprocal r -> i, Mul d i -> y"),
    "layer norm, shifted": (
        "layer_norm",
        "ReduceMean x -> u, Sub x u -> d, Mul d d -> s, ReduceMean s -> v, Add v eps -> e, Sqrt e -> r, "
        "Reciprocal r -> i, Mul i w -> g, Mul x g -> a, Mul u g -> h, Sub b h -> c, Add a c -> y",
    ),
    "rms norm": ("rms_norm", f"{SQUARE}, Sqrt e -> r, Div one r -> i, Mul x i -> n, Mul n w -> y"),
    "rms norm by a quotient": ("rms_norm", f"{SQUARE}, Sqrt e -> r, Div x r -> n, Mul w n -> y"),
    "rms norm by a power": ("rms_norm", f"{SQUARE}, Pow e minus -> i, Mul i x -> n, Add one w -> g, Mul n g -> y"),
}


@pytest.mark.parametrize("opset", [14, 18])
@pytest.mark.parametrize("name", NORMS)
def test_norms_that_are_spelt_out(name: str, opset: int) -> None:
    kind, steps = NORMS[name]
    assert check(spelt(steps, opset=opset), {"n": 3}) == ["activation", kind]


@pytest.mark.parametrize("name", ["layer norm", "rms norm"])
def test_float16(name: str) -> None:
    kind, steps = NORMS[name]
    nodes = [helper.make_node("Cast", ["given"], ["in"], to=1)]
    model = onnx.load_from_string(spelt(steps))
    nodes += [*model.graph.node, helper.make_node("Cast", ["y"], ["result"], to=10)]
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    types = {"given": "FLOAT16", "result": "FLOAT16"}
    made = make_model(nodes, {"given": ["n", 5, WIDTH]}, {"result": None}, constants, types=types)
    assert check(made, {"n": 3}, 1e-3) == ["activation", kind]


def test_a_mean_that_is_wanted() -> None:
    assert check(spelt(f"{MEAN}, Div d r -> y", "y u"), {"n": 3}).count("rms_norm") == 1


ACTIVATIONS = {
    "Mish": "Softplus x -> s, Tanh s -> t, Mul x t -> y",
    "quick GELU": "Mul x sigma -> s, Sigmoid s -> g, Mul x g -> y",
    "new GELU": (
        "Pow x three -> c, Mul c cube -> k, Add x k -> s, Mul s root -> i, Tanh i -> t, Add t one -> g, "
        "Mul x half -> h, Mul h g -> y"
    ),
    "fast GELU": (
        "Mul x x -> q, Mul q cube -> k, Add k one -> f, Mul x root -> p, Mul p f -> i, Tanh i -> t, Add one t -> g, "
        "Mul x g -> h, Mul h half -> y"
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_that_are_spelt_out(name: str) -> None:
    assert check(spelt(ACTIVATIONS[name]), {"n": 3}) == ["activation"] * 2


def of_runtime(
    op: str,
    constants: list[np.ndarray | None],
    outputs: str = "y",
    flows: int = 1,
    domain: str = "com.microsoft",
    **a: Any,
) -> bytes:
    """An op of the runtime's own, on `flows` inputs and constants (None: left out); a name of "" is no output."""
    named = {f"c{i}": value for i, value in enumerate(constants) if value is not None}
    inputs = [f"x{i}" for i in range(flows)]
    names = [*inputs, *("" if value is None else f"c{i}" for i, value in enumerate(constants))]
    given = outputs.split(" ")
    node = helper.make_node(op, names, given, domain=domain, **a)
    wanted: dict[str, Any] = {name: ["n", 5, WIDTH] for name in given if name}
    return make_model([node], {name: ["n", 5, WIDTH] for name in inputs}, wanted, named)


W, B = f32(WIDTH), f32(WIDTH)
OWN = {
    "layer norm": ("layer_norm", of_runtime("LayerNormalization", [W, B], domain="", axis=-1)),
    "simplified": ("rms_norm", of_runtime("SimplifiedLayerNormalization", [W], domain="", epsilon=0.1)),
    "simplified, two axes": (
        "rms_norm",
        of_runtime("SimplifiedLayerNormalization", [f32(5, WIDTH)], domain="", axis=1),
    ),
    "skip": ("layer_norm", of_runtime("SkipLayerNormalization", [W, B], flows=2)),
    "skip, no beta": ("layer_norm", of_runtime("SkipLayerNormalization", [W], flows=2, epsilon=0.1)),
    "skip, bias": ("layer_norm", of_runtime("SkipLayerNormalization", [W, B, f32(WIDTH)], flows=2)),
    "skip, bias and no beta": ("layer_norm", of_runtime("SkipLayerNormalization", [W, None, B], flows=2)),
    "skip and its sum": ("layer_norm", of_runtime("SkipLayerNormalization", [W, B], "y   s", flows=2)),
    "skip of a constant": ("layer_norm", of_runtime("SkipLayerNormalization", [f32(5, WIDTH), W, B])),
    "simplified skip": ("rms_norm", of_runtime("SkipSimplifiedLayerNormalization", [W], flows=2)),
    "simplified skip, bias": (
        "rms_norm",
        of_runtime("SkipSimplifiedLayerNormalization", [W, B], "y   s", flows=2, epsilon=0.1),
    ),
    "GELU": ("activation", of_runtime("Gelu", [])),
    "GELU and a bias": ("binary", of_runtime("BiasGelu", [B])),
    "fast GELU": ("activation", of_runtime("FastGelu", [])),
    "fast GELU and a bias": ("binary", of_runtime("FastGelu", [B])),
    "quick GELU": ("activation", of_runtime("QuickGelu", [])),
    "quick GELU, alpha": ("activation", of_runtime("QuickGelu", [], alpha=0.7)),
    "quick GELU, alpha of 1": ("activation", of_runtime("QuickGelu", [], alpha=1.0)),
}


@pytest.mark.parametrize("name", OWN)
def test_ops_of_the_runtime(name: str) -> None:
    kind, model = OWN[name]
    assert kind in check(model, {"n": 3})


def test_bias_that_flows() -> None:
    nodes = [
        helper.make_node("Tanh", ["b"], ["t"]),
        helper.make_node("FastGelu", ["x", "t"], ["y"], domain="com.microsoft"),
    ]
    check(make_model(nodes, {"x": ["n", WIDTH], "b": [WIDTH]}, {"y": None}), {"n": 3})


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("places", [None, 1, 3])
@pytest.mark.parametrize("sums", [False, True])
def test_embedded_words(kinds: bool, places: int | None, sums: bool) -> None:
    """`places`: how many texts have positions of their own."""
    shapes: dict[str, Any] = {"words": [3, 5]}
    constants = {"word_rows": f32(2, WIDTH), "place_rows": f32(6, WIDTH), "gamma": W, "beta": B}
    if kinds:
        shapes["kinds"], constants["kind_rows"] = [3, 5], f32(2, WIDTH)
    if places is not None:
        shapes["places"] = [places, 5]
    order = ["words", "kinds", "word_rows", "place_rows", "kind_rows", "gamma", "beta", "", "places"]
    inputs = [name if name in shapes or name in constants else "" for name in order]
    outputs = ["y", "counts", "sum"] if sums else ["y", "counts"]
    node = helper.make_node("EmbedLayerNormalization", inputs, outputs, domain="com.microsoft", epsilon=1e-5)
    wanted: dict[str, Any] = {name: None for name in outputs if name != "counts"}
    types = dict.fromkeys(shapes, "INT32")
    assert "layer_norm" in check(make_model([node], shapes, wanted, constants, types=types))


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_statistics_that_are_wanted(op: str) -> None:
    """The CPU provider keeps the node, whatever it makes of it."""
    names = ["x", "skip", "w"]
    nodes = [
        helper.make_node("Tanh", ["in"], ["x"]),
        helper.make_node(op, names, ["y", "mean"], domain="com.microsoft"),
    ]
    shapes = {"in": [2, 5, WIDTH], "skip": [2, 5, WIDTH]}
    model = make_model(nodes, shapes, {"y": [2, 5, WIDTH], "mean": [2, 5, 1]}, {"w": W})
    with pytest.raises(Exception, match="fallback"):
        whole_session(model)
