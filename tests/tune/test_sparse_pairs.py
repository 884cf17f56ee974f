"""Pairs of convolutions in graphs: which are found, and that plans take them as an exact cover."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.tune.records import Cost, costs

ISA = _C.available_isas()[0]


def weights(rng: np.random.Generator, k: int, c: int, zeros: float = 0.9) -> dict[str, Any]:
    weight = rng.standard_normal((k, c, 3, 3), dtype=np.float32) * np.float32(0.2)
    weight[rng.random(weight.shape) < zeros] = 0
    return {"weight": weight, "bias": rng.standard_normal(k, dtype=np.float32)}


CHANNELS = [16, 20, 24, 12, 28]  # no pair of these has another's shape


def chain(layers: int = 3, zeros: float = 0.9, tap: int = -1, skip: bool = False, fan: bool = False) -> softneuro.Graph:
    """Convolutions one behind the other.

    tap: whose result is an output, too; skip: the last adds the first's input, as in residual networks; fan: it adds
    its own.
    """
    rng = np.random.default_rng(0)
    graph = softneuro.Graph()
    x = blob = graph.input("x", (1, CHANNELS[0], 20, 24))
    channels = CHANNELS[: layers + 1]
    if skip or fan:
        channels[-1] = channels[0] if skip else channels[-2]
    for i in range(layers):
        inputs, post = [blob], {"activation": "relu"}
        if i == layers - 1 and (skip or fan):
            inputs, post = [blob, x if skip else blob], {"activation": "relu", "residual": True}
        conv = weights(rng, channels[i + 1], channels[i], zeros)
        blob = graph.add("conv2d", inputs, weights=conv, padding=[1] * 4, post=post, name=f"conv{i}")
        if i == tap:
            graph.output(blob)
    graph.output(blob)
    return graph


def own(graph: softneuro.Graph) -> list[str]:
    return [layer.descriptor for layer in _C.tune(graph, _C.parse_options({"tune": "off"}), 1).layers]


def paired() -> list[str]:
    """A descriptor of each algorithm."""
    rng = np.random.default_rng(0)
    both = {f"{role}_{name}": v for role in ("first", "second") for name, v in weights(rng, 16, 16).items()}
    attrs = {"first_padding": [1] * 4, "second_padding": [1] * 4}
    accepted = _C.testing.accepting("conv2d_pair", attrs, both, [(1, 16, 20, 24)])
    return list({d.split("{")[0]: d for d in accepted if d.split("{")[0].endswith(f"_{ISA}")}.values())


def agrees(graph: softneuro.Graph, net: softneuro.Net) -> None:
    x = np.random.default_rng(1).standard_normal(graph.input_shapes[0], dtype=np.float32)
    for actual, expected in zip(net.run([x]), graph.reference([x]), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-4)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("descriptor", paired())
def test_a_net_of_each_pair(descriptor: str, skip: bool) -> None:
    """Takes either pair of three convolutions in a chain; two pairs of four."""
    graph = chain(skip=skip)
    first, _, last = own(graph)
    for plan in (["", descriptor, last], [first, "", descriptor]):
        net = softneuro.Net(graph, plan, threads=2)
        agrees(graph, net)
        steps = net.profile([np.zeros(graph.input_shapes[0], np.float32)], 1)
        assert sum(step[2].startswith("conv2d_pair/") for step in steps) == 1
    graph = chain(4, skip=skip)
    agrees(graph, softneuro.Net(graph, ["", descriptor, "", descriptor], threads=2))


def test_pairs_that_overlap_cover_no_layer_twice() -> None:
    graph, descriptor = chain(), paired()[0]
    with pytest.raises(softneuro.Error, match=r"no routine was assigned|no conv2d_pair ends here"):
        softneuro.Net(graph, ["", descriptor, descriptor])
    with pytest.raises(softneuro.Error, match=r"no routine was assigned|no conv2d_pair ends here"):
        softneuro.Net(graph, ["", "", descriptor])


@pytest.mark.parametrize("miss", [{"tap": 0}, {"fan": True}])
def test_what_is_no_pair(miss: dict[str, Any]) -> None:
    """The first one's result is wanted elsewhere, or added once more."""
    graph = chain(2, **miss)
    with pytest.raises(softneuro.Error, match=r"no routine was assigned|no conv2d_pair ends here"):
        softneuro.Net(graph, ["", paired()[0]])


def test_dense_weights_are_declined() -> None:
    with pytest.raises(softneuro.Error, match="neither weight is sparse"):
        softneuro.Net(chain(2, zeros=0), ["", paired()[0]])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Cost]:
    """Costs of all that a chain of four layers might use."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("measured")
        patch.setenv("SOFTNEURO_CACHE_DIR", str(folder))
        _C.tune(chain(4), _C.parse_options({"time_budget_s": "1"}), 1)
        return costs(folder)


def test_costs_of_pairs_are_of_both_patterns(measured: list[Cost]) -> None:
    keys = [cost.signature for cost in measured if cost.descriptor.startswith("conv2d_pair/")]
    assert keys
    for key in keys:
        assert "first_weight[zeros=0.9," in key
        assert "second_weight[zeros=0.9," in key


@pytest.mark.parametrize(
    ("pairs", "three", "four"),
    [
        ([1.9, 2.5, 2.5], "-pc", "-pcc"),
        ([2.5, 1.9, 2.5], "c-p", "c-pc"),
        ([1.7, 1.5, 1.7], "c-p", "-p-p"),
        ([1.9, 1.5, 1.9], "c-p", "c-pc"),
        ([2.5, 2.5, 2.5], "ccc", "cccc"),
    ],
)
def test_a_plan_is_an_exact_cover(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: list[Cost],
    pairs: list[float],
    three: str,
    four: str,
) -> None:
    """Pairs overlap and have these costs, layers cost one each: what costs least in all is taken."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    for cost in measured:
        if "graph" in cost.signature:
            continue
        seconds = {"conv2d": 1.0, "adapt": 1e-9}.get(cost.descriptor.split("/")[0], 9.0)
        if cost.descriptor.startswith("conv2d_pair/"):
            first, second = re.findall(r"(?:first|second)_weight:(\d+)x", cost.signature)
            seconds = pairs[CHANNELS.index(int(first)) - 1]
            assert CHANNELS.index(int(second)) == CHANNELS.index(int(first)) + 1
        cost.make_up(1e-3 * seconds)
    for layers, wanted in ((3, three), (4, four)):
        plan = _C.tune(chain(layers), _C.parse_options({"tune": "cached"}), 1)
        kinds = {"": "-", "conv2d": "c", "conv2d_pair": "p"}
        assert "".join(kinds[layer.descriptor.split("/")[0]] for layer in plan.layers) == wanted
        agrees(chain(layers), softneuro.Net(chain(layers), plan))
