"""Plans that store blobs of reals in bytes: each form that there is, the error that is foretold, grids that travel."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from softneuro import _C, tuner

Array = npt.NDArray[np.float32]


def values(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def convolution(
    graph: _C.Graph, name: str, x: int, inputs: int, outputs: int, post: dict[str, str], size: int = 3
) -> int:
    weight = values(outputs, inputs, size, size, seed=len(name) + outputs, scale=(2 / (inputs * size * size)) ** 0.5)
    weights = {"weight": weight, "bias": values(outputs, seed=3, scale=0.1)}
    return graph.add("conv2d", [x], padding=[size // 2] * 4, weights=weights, post=post, name=name)


def network(batch: int = 1, side: int = 12, factor: float = 1.0) -> _C.Graph:
    """Convolutions with a shortcut, depthwise, pools, a concatenation, a table function, and linear layers."""
    graph = _C.Graph()
    x = graph.input("x", [batch, 3, side, side])
    relu = {"activation": "relu"}
    a = convolution(graph, "first", x, 3, 16, relu)
    b = convolution(graph, "second", a, 16, 16, {})
    c = graph.add("binary", [b, a], function="add", post=relu, name="sum")
    deep = {"weight": values(16, 1, 3, 3, seed=5, scale=0.5)}
    d = graph.add("conv2d", [c], padding=[1] * 4, groups=16, weights=deep, post=relu, name="depthwise")
    e = convolution(graph, "wide", d, 16, 24, relu, size=1)
    f = graph.add("concat", [c, e], axis=1, name="both")
    g = graph.add("pool2d", [f], function="max", kernel=[2, 2], stride=[2, 2], name="most")
    h = graph.add("activation", [g], function="hardswish", name="swish")
    i = graph.add("adaptive_pool2d", [h], function="avg", output_size=[1, 1], name="mean")
    j = graph.add("reshape", [i], shape=[batch, 40], name="flat")
    hidden = {"weight": values(64, 40, seed=8, scale=factor * 0.2)}
    k = graph.add("linear", [j], weights=hidden, post=relu, name="hidden")
    graph.output(graph.add("linear", [k], weights={"weight": values(10, 64, seed=9, scale=0.2)}, name="head"))
    graph.optimize()
    return graph


def data(count: int = 4, batch: int = 1, side: int = 12) -> list[Array]:
    return [values(batch, 3, side, side, seed=20 + i) for i in range(count)]


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ranges") / "ranges.txt"
    save(network(), path)
    return str(path)


def save(graph: _C.Graph, path: Path, method: str = "min_max") -> _C.RangeSection:
    calibrator = _C.Calibrator(graph)
    net = calibrator.watching(graph)
    for x in data():
        net.run([x])
        calibrator.end_batch()
    section = calibrator.finish(method, 60)
    table = _C.RangeTable()
    table.set(section)
    table.save(str(path))
    return section


def run(graph: _C.Graph, plan: _C.Plan | None, x: Array) -> Array:
    return _C.Net(graph, plan, threads=1).run([x])[0]


def error(result: Array, truth: Array) -> float:
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth))


def tune(graph: _C.Graph, **options: object) -> _C.Plan:
    return tuner.tune(graph, {"threads": 1, "time_budget_s": 2, **options})


def in_bytes(**options: object) -> dict[str, object]:
    """Options by which a convolution runs in bytes, whatever is faster here."""
    routines = [entry for entry in _C.registry() if entry["layer"] == "conv2d" and entry["available"]]
    starts = "conv2d/cpu:qint8:nhwc/int8"
    chosen = next(entry["descriptor"] for entry in routines if entry["descriptor"].startswith(starts))
    return {"fixed": f"wide={chosen}", **options}


def is_bytes(layer: _C.LayerReport) -> bool:
    return "qint8" in layer.descriptor


def test_ranges_and_errors_by_blob_and_form(tmp_path: Path) -> None:
    graph = network()
    section = save(graph, tmp_path / "ranges.txt")
    assert section.structure == _C.range_key(graph)
    assert section.weights == graph.weights_identity()
    assert (section.batches, section.samples) == (4, 4)
    first = section.blobs[0]
    assert (first.least, first.most) == (min(x.min() for x in data()), max(x.max() for x in data()))
    forms = {(row.name, row.form) for row in section.layers}
    assert forms >= {("first", "bytes"), ("hidden", "bytes"), ("hidden", "dynamic"), ("head", "blocks4")}
    errors = {(row.name, row.form): row.error for row in section.layers}
    assert errors["head", "blocks4"] > errors["head", "blocks8"] > 0
    assert all(row.error is not None and row.error < 0.5 for row in section.blobs)


@pytest.mark.parametrize("limit", [1e-4, 2e-3, 1e-2, 0.1])
def test_foretold_errors_keep_to_the_limit(ranges: str, limit: float) -> None:
    graph = network()
    plan = tune(graph, calibration=ranges, max_error=limit)
    assert plan.foretold_error <= limit
    worst = max(error(run(graph, plan, x), run(graph, None, x)) for x in data())
    assert worst <= max(2 * plan.foretold_error, 1e-4)
    if limit == 1e-4:
        assert not plan.grids
        assert not any(map(is_bytes, plan.layers))


def test_looser_limits_are_never_slower(ranges: str) -> None:
    graph = network()
    limits = (1e-4, 2e-3, 1e-2, 0.1, 1)
    plans = [tune(graph, calibration=ranges, max_error=limit, tune="off") for limit in limits]
    seconds = [plan.predicted_s for plan in plans]
    assert all(b <= 1.001 * a for a, b in itertools.pairwise(seconds))
    assert all(plan.lower_bound_s <= plan.predicted_s <= 1.001 * plan.lower_bound_s for plan in plans)


@pytest.mark.parametrize("name", ["first", "second", "depthwise", "wide", "both", "most", "swish", "mean", "hidden"])
def test_every_routine_of_bytes_runs_in_its_form(ranges: str, name: str) -> None:
    graph = network()
    x = data()[0]
    truth = run(graph, None, x)
    layer = next(layer for layer in tune(graph, tune="off").layers if layer.name == name)
    tried = 0
    for entry in _C.registry():
        bytes_routine = entry["layer"] == layer.type and "qint8" in entry["descriptor"]
        if not bytes_routine or not entry["available"]:
            continue
        try:
            options = {"calibration": ranges, "max_error": 1, "fixed": f"{name}={entry['descriptor']}", "tune": "off"}
            plan = tune(graph, **options)
        except _C.Error:
            continue  # it declines this layer
        chosen = next(one for one in plan.layers if one.name == name)
        assert chosen.descriptor.startswith(entry["descriptor"])
        assert error(run(graph, plan, x), truth) < 0.05
        tried += 1
    assert tried > 0


def test_layers_that_are_kept_stay_in_floats(ranges: str) -> None:
    plan = tune(network(), calibration=ranges, max_error=1, keep="*:float32")
    assert not plan.grids
    assert not any(layer.descriptor.startswith(("dynamic", "linear_blocks")) for layer in plan.layers)


def test_a_plan_takes_its_grids_along(ranges: str, tmp_path: Path) -> None:
    graph, x = network(), data()[1]
    path = str(tmp_path / "plans.txt")
    plan = tune(graph, **in_bytes(calibration=ranges, max_error=0.05, plan=path))
    assert plan.grids
    tune(graph, calibration=ranges, max_error=1e-4, plan=path)
    result = run(graph, plan, x)
    again = tune(graph, plan=path, max_error=0.05)
    assert [layer.descriptor for layer in again.layers] == [layer.descriptor for layer in plan.layers]
    assert again.grids == plan.grids
    np.testing.assert_array_equal(run(graph, again, x), result)
    assert not tune(graph, plan=path, max_error=1e-4).grids
    other = network(factor=1.5)
    assert other.structural_hash() == graph.structural_hash()
    assert not tune(other, plan=path, max_error=0.05).grids


def test_a_plan_is_carried_to_other_shapes(ranges: str) -> None:
    graph, larger = network(), network(batch=2, side=20)
    assert _C.range_key(graph) == _C.range_key(larger)
    plan = tune(graph, **in_bytes(calibration=ranges, max_error=0.05))
    carried = plan.carry_over(larger, 1)
    assert carried.grids == plan.grids
    x = data(1, batch=2, side=20)[0]
    assert error(run(larger, carried, x), run(larger, None, x)) < 0.08
    own = tune(larger, **in_bytes(calibration=ranges, max_error=0.05))
    assert own.grids
    assert error(run(larger, own, x), run(larger, None, x)) < 0.08


def test_values_outside_the_range_saturate(ranges: str) -> None:
    graph = network()
    plan = tune(graph, **in_bytes(calibration=ranges, max_error=0.05))
    wild = 1e6 * data()[0]
    assert np.isfinite(run(graph, plan, wild)).all()
    wild[0, 0, 0, 0] = np.nan
    run(graph, plan, wild)


def test_files_that_say_nothing(tmp_path: Path, ranges: str) -> None:
    with pytest.raises(_C.Error, match="no file of ranges at this path"):
        tune(network(), calibration=str(tmp_path / "none.txt"), max_error=0.05)
    (tmp_path / "other.txt").write_text("hello\n")
    with pytest.raises(_C.Error, match="no file of ranges"):
        tune(network(), calibration=str(tmp_path / "other.txt"), max_error=0.05)
    graph = _C.Graph()
    x = graph.input("x", [1, 4])
    graph.output(graph.add("linear", [x], weights={"weight": values(3, 4)}))
    graph.optimize()
    assert not tune(graph, calibration=ranges, max_error=0.05).grids
    with pytest.raises(_C.Error, match="how many calls"):
        tune(graph, calibration="online:0")
    with pytest.raises(_C.Error, match="no batch was observed"):
        _C.Calibrator(graph).finish()


@pytest.mark.parametrize("seconds", [0.001, 0.003, 0.01, 0.03, 0.1, 10.0])
def test_what_time_is_lacking_for_errs_by_its_bits(seconds: float) -> None:
    graph = _C.Graph()
    x = graph.input("x", [16, 256])
    for i in range(10):
        x = graph.add("linear", [x], weights={"weight": values(256, 256, seed=i, scale=0.1)}, name=f"layer{i}")
    graph.output(x)
    graph.optimize()
    calibrator = _C.Calibrator(graph)
    for i in range(2):
        calibrator.watching(graph).run([values(16, 256, seed=20 + i)])
        calibrator.end_batch()
    errors = {(row.name, row.form): row.error for row in calibrator.finish("min_max", seconds).layers}
    for i in range(10):
        few, more = errors.get((f"layer{i}", "blocks4")), errors.get((f"layer{i}", "blocks8"))
        if few is not None and more is not None:
            assert few > 0.03
            assert few > 3 * more or more > 0.03
    if seconds == 10:
        assert errors["layer9", "blocks4"] is not None
