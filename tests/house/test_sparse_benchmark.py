"""The benchmark of pruned networks: what it prunes, which routines it shuts out, and how it sums up."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C

sparse = pytest.importorskip("benchmarks.sparse")
pruned = pytest.importorskip("benchmarks.pruned")
shut_out = pytest.importorskip("benchmarks.shut_out")
sparse_plot = pytest.importorskip("benchmarks.sparse_plot")
torch = pytest.importorskip("torch")


def layers(way: str, seed: int = 0, fc: bool = False) -> list[torch.Tensor]:
    """Weights of a pruned convolution and a pruned linear layer, and of the latter's bias."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(32, 40, 3), torch.nn.Flatten(), torch.nn.Linear(50, 60))
    before = [float(model[at].weight.detach().norm()) for at in (0, 2)]
    pruned.prune(model, 0.9, way=way, seed=seed, fc=fc)
    assert [float(model[at].weight.detach().norm()) for at in (0, 2)] == pytest.approx(before, rel=1e-4)
    return [model[0].weight, model[2].weight, model[2].bias]


def zeros(weight: torch.Tensor) -> float:
    return float((weight == 0).float().mean())


@pytest.mark.parametrize("way", pruned.WAYS)
def test_weights_are_pruned_layer_by_layer(way: str) -> None:
    first, again, other = layers(way), layers(way), layers(way, seed=1, fc=True)
    assert [zeros(weight) for weight in first] == pytest.approx([0.9, 0, 0], abs=1e-3)
    assert [zeros(weight) for weight in other] == pytest.approx([0.9, 0.9, 0], abs=1e-3)
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0] == 0, other[0] == 0)


def test_magnitudes_leave_rows_uneven() -> None:
    """How much a layer's output channels differ in zeros."""
    spread = {way: float((layers(way)[0] == 0).float().mean(dim=(1, 2, 3)).std()) for way in pruned.WAYS}
    assert spread["magnitude"] > 4 * spread["random"]


def test_the_synthetic_network_is_the_papers() -> None:
    model, example = pruned.build("synthetic", 0.95)
    assert example.shape == (1, 3, 1000, 1000)
    weights = [module.weight for module in model if isinstance(module, torch.nn.Conv2d)]
    assert [tuple(weight.shape) for weight in weights] == [
        (64, 3, 3, 3),
        (64, 64, 3, 3),
        (32, 64, 3, 3),
        (32, 32, 3, 3),
    ]
    assert [zeros(weight) for weight in weights] == pytest.approx([0.95] * 4, abs=1e-3)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[softneuro.Graph, Path]:
    """Three convolutions that are all zeros but for a few, and what was measured for them."""
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 16, 40, 40))
    for _ in range(3):
        weight = np.zeros((16, 16, 3, 3), np.float32)
        weight[::4, 1, 1, 1] = 1
        blob = graph.add("conv2d", [blob], weights={"weight": weight}, padding=[1] * 4)
    graph.output(blob)
    folder = tmp_path_factory.mktemp("costs")
    with shut_out.costs_in(str(folder)):
        softneuro.tune(graph, {"threads": 1, "time_budget_s": 1})
    return graph, folder


@pytest.mark.parametrize("unwanted", [shut_out.is_sparse, shut_out.is_pair])
def test_routines_are_shut_out(tuned: tuple[softneuro.Graph, Path], unwanted: Callable[[str], bool]) -> None:
    graph, folder = tuned
    before = (folder / "costs.txt").read_text()
    with shut_out.costs_in(str(folder)):
        chosen = [layer.descriptor for layer in softneuro.tune(graph, {"threads": 1, "tune": "cached"}).layers]
        # Those that win would be taken again.
        plan = shut_out.plan_without(graph, lambda d: unwanted(d) or d in chosen, 1, tune="cached")
    descriptors = [layer.descriptor for layer in plan.layers]
    assert any(shut_out.is_sparse(descriptor) for descriptor in chosen)
    assert not set(descriptors) & set(chosen) - {""}
    assert not any(map(unwanted, descriptors))
    assert (folder / "costs.txt").read_text() == before
    softneuro.Net(graph, plan)


def test_all_that_use_zeros_are_sparse() -> None:
    weight = np.zeros((16, 16, 3, 3), np.float32)
    weight[0] = 1
    shapes, attrs = [(1, 16, 9, 9)], {"padding": [1] * 4}
    many = _C.testing.accepting("conv2d", attrs, {"weight": weight}, shapes)
    few = _C.testing.accepting("conv2d", attrs, {"weight": np.ones_like(weight)}, shapes)
    assert {shut_out.is_sparse(d) for d in set(many) - set(few)} == {True}
    assert {shut_out.is_sparse(d) for d in few} == {False}


def measured() -> list[sparse.Figure]:
    """Two seeds of one case, one of another."""
    figures = []
    for zeros, seed, factor in ((90.0, 0, 1.0), (90.0, 1, 3.0), (95.0, 0, 0.5)):
        for contender, ms in (("dense", 20.0), ("dsconv", 12.0), ("fused", 10.0), ("onnxruntime", 40.0)):
            own = contender in sparse.OWN
            figures.append(
                sparse.Figure("vgg19", "random", zeros, 2, seed, contender, ms * factor, 8.0 if own else None, 1e-6)
            )
    return figures


def test_summary() -> None:
    first, second = sparse.summarise(measured())
    assert first.ms == {"dense": 40, "dsconv": 24, "fused": 20, "onnxruntime": 80}
    assert (first.best_peer, second.ms["fused"], second.error) == (4, 5, 1e-6)
    header, rows = sparse.rows_of([first, second], ["onnxruntime", "openvino"])
    row = dict(zip(header, rows[0], strict=True))
    assert (row["zeros"], row["fused ms"], row["dense ms"]) == ("90 %", "20.00", "40.00 (2.00)")
    assert (row["openvino ms"], row["best peer"], row["dsconv MiB"]) == ("-", "4.00", "8")


def test_what_is_recorded_is_short() -> None:
    header, rows = sparse.recorded(sparse.summarise(measured()))
    assert header == ["network, pruned by, threads", "90 % ms", "95 % ms"]
    assert rows == [["vgg19, random, 2", "20.00 (2.00, 4.00)", "5.00 (2.00, 4.00)"]]


def test_files(tmp_path: Path) -> None:
    sparse.write_csv(tmp_path / "figures.csv", measured())
    rows = list(csv.DictReader((tmp_path / "figures.csv").open()))
    assert len(rows) == 12
    assert (rows[0]["network"], rows[0]["ms"], rows[3]["peak_mib"]) == ("vgg19", "20.0", "")
    points = sparse_plot.lines(measured())
    assert points[(2, "vgg19")][("fused", "random")] == [(90, 20), (95, 5)]
    pytest.importorskip("matplotlib")
    sparse_plot.plot(tmp_path / "figure.svg", measured())
    assert (tmp_path / "figure.svg").read_text().count("vgg19, 2 thread(s)") == 1
