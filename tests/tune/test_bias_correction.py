"""Biases that make up for what rounded weights add to outputs on average, where that has measured to err less."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from softneuro import _C
from tests.tune.test_forms import Array, error, run, tune, values

CHANNELS = 8


def level(batch: int = 1, side: int = 6) -> Array:
    """Each channel has one value everywhere, which is its mean."""
    levels = np.linspace(-1, 3, CHANNELS, dtype=np.float32).reshape(1, -1, 1, 1)
    return np.broadcast_to(levels, (batch, CHANNELS, side, side)).copy()


def convolution(groups: int, bias: bool) -> _C.Graph:
    graph = _C.Graph()
    x = graph.input("x", [1, CHANNELS, 6, 6])
    weights = {"weight": values(16, CHANNELS // groups, 3, 3, seed=groups)}
    if bias:
        weights["bias"] = values(16, seed=2)
    graph.output(graph.add("conv2d", [x], groups=groups, weights=weights, name="conv"))
    graph.optimize()
    return graph


def linear(bias: bool, rows: int = 3, inputs: int = 70) -> _C.Graph:
    graph = _C.Graph()
    x = graph.input("x", [rows, inputs])
    weights = {"weight": values(24, inputs, seed=4)}
    if bias:
        weights["bias"] = values(24, seed=2)
    graph.output(graph.add("linear", [x], weights=weights, name="product"))
    graph.optimize()
    return graph


def calibrate(graph: _C.Graph, data: list[Array], path: Path | None = None) -> _C.RangeSection:
    calibrator = _C.Calibrator(graph)
    net = calibrator.watching(graph)
    for x in data:
        net.run([x])
        calibrator.end_batch()
    section = calibrator.finish("min_max", 60)
    if path is not None:
        save(section, path)
    return section


def save(section: _C.RangeSection, path: Path) -> None:
    table = _C.RangeTable()
    table.set(section)
    table.save(str(path))


def as_it_is(section: _C.RangeSection) -> _C.RangeSection:
    """The same without corrections."""
    rows = section.layers
    for row in rows:
        row.corrected = False
    section.layers = rows
    return section


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2, CHANNELS])
def test_constant_inputs_leave_no_error_of_weights(groups: int, bias: bool) -> None:
    section = calibrate(convolution(groups, bias), [level()] * 2)
    [row] = section.layers
    assert (row.form, row.corrected) == ("bytes", True)
    assert row.error is not None
    assert row.error < 1e-5


@pytest.mark.parametrize("bias", [False, True])
def test_every_form_of_a_product(bias: bool) -> None:
    x = np.broadcast_to(1 + values(70, seed=9), (3, 70)).copy()
    errors = {row.form: (row.corrected, row.error) for row in calibrate(linear(bias), [x] * 2).layers}
    assert errors.keys() == {"bytes", "dynamic", "blocks8", "blocks4"}
    assert all(corrected for corrected, _ in errors.values())
    # The scales that follow from values in the run round these, too.
    assert all(
        found is not None and found < (0.02 if form == "dynamic" else 1e-5) for form, (_, found) in errors.items()
    )


def test_where_nothing_is_won_the_bias_stays() -> None:
    assert not any(row.corrected for row in calibrate(linear(True), [np.zeros((3, 70), np.float32)]).layers)


def test_means_of_few_samples_are_judged_by_others() -> None:
    """They would fit these samples themselves, whatever is in them."""
    noise = [values(1, 70, seed=i) for i in range(3)]
    assert not any(row.corrected for row in calibrate(linear(True, rows=1), noise).layers)
    alone = calibrate(linear(True), [2 + 0 * values(3, 70)])
    assert alone.means
    assert not any(row.corrected for row in alone.layers)


def test_corrections_have_to_be_of_use_together() -> None:
    """What one product's weights add, another's take off: that is best left so, as the other's bias has to stay."""

    def section(other: bool) -> _C.RangeSection:
        graph = _C.Graph()
        x, z = (graph.input(name, [1, 6, 5, 6]) for name in "xz")
        weight = values(4, 6)
        y = graph.add("linear", [z], weights={"weight": weight, "bias": values(4)}, name="product")
        if other:  # whose input is read along two axes, so that it has no means
            graph.output(graph.add("conv2d", [x], weights={"weight": values(4, 6, 1, 1)}, name="conv"))
            less = graph.add("linear", [x], weights={"weight": -weight}, name="other")
            y = graph.add("binary", [y, less], function="add")
        graph.output(y)
        graph.optimize()
        calibrator = _C.Calibrator(graph)
        net = calibrator.watching(graph)
        for i in range(3):
            net.run([2 + 0.1 * values(1, 6, 5, 6, seed=i)] * 2)
            calibrator.end_batch()
        return calibrator.finish("min_max", 60)

    for other in (False, True):
        found = {row.form: row.corrected for row in section(other).layers if row.name == "product"}
        assert found["blocks8"] == found["blocks4"] == (not other)


def test_means_are_those_of_the_data() -> None:
    data = [1 + values(1, CHANNELS, 6, 6, seed=i) for i in range(3)]
    data[1][0, 2, 1, 1] = np.nan
    data[2][0, 5, 0, 0] = np.inf
    [means] = calibrate(convolution(1, True), data).means
    together = np.concatenate(data).astype(np.float64)
    together[~np.isfinite(together)] = np.nan
    assert means.blob == 0
    np.testing.assert_allclose(means.values, np.nanmean(together, axis=(0, 2, 3)), rtol=1e-5)


def test_a_blob_that_is_read_along_two_axes_has_no_means() -> None:
    graph = _C.Graph()
    x = graph.input("x", [1, 6, 5, 6])
    graph.output(graph.add("conv2d", [x], weights={"weight": values(4, 6, 1, 1)}, name="conv"))
    graph.output(graph.add("linear", [x], weights={"weight": values(4, 6)}, name="product"))
    graph.optimize()
    section = calibrate(graph, [1 + values(1, 6, 5, 6)])
    assert not section.means
    assert not any(row.corrected for row in section.layers)


def in_blocks(graph: _C.Graph, **options: object) -> _C.Plan:
    """A plan whose product has weights of few bits, whatever is faster here."""
    for entry in _C.registry():
        if entry["layer"] != "linear_blocks" or not entry["available"]:
            continue
        try:
            return tune(graph, max_error=0.9, fixed=f"product={entry['descriptor']}", **options)
        except _C.Error:
            continue  # it declines, or another level's is as good
    raise AssertionError("no routine takes it")


def test_plans_run_and_keep_corrections(tmp_path: Path) -> None:
    graph, path, plans = linear(True), tmp_path / "ranges.txt", str(tmp_path / "plans.txt")
    data = [2 + 0.3 * values(3, 70, seed=i) for i in range(6)]
    section = calibrate(graph, data[:4], path)
    plan = in_blocks(graph, plan=plans, calibration=str(path))
    assert (0, "blocks8") in plan.corrected
    save(as_it_is(section), tmp_path / "plain.txt")
    plain = in_blocks(graph, calibration=str(tmp_path / "plain.txt"))
    assert not plain.corrected
    before, after = (max(error(run(graph, one, x), run(graph, None, x)) for x in data[4:]) for one in (plain, plan))
    assert after < 0.5 * before
    again = tune(graph, plan=plans, max_error=0.9)
    assert again.corrected == plan.corrected
    np.testing.assert_array_equal(run(graph, again, data[4]), run(graph, plan, data[4]))


def test_other_means_make_another_plan(tmp_path: Path) -> None:
    """Neither plans nor packed weights are shared."""
    graph, plans = linear(False), str(tmp_path / "plans.txt")
    x = np.broadcast_to(2 + values(70, seed=9), (3, 70)).copy()
    results = []
    for i, factor in enumerate((1.0, 1.5)):
        section = calibrate(graph, [factor * x])
        # The same ranges and errors, so that means are all that differs.
        section.blobs = [_C.BlobRange(row.blob, row.name, -9, 9, 1, 0, 0.01) for row in section.blobs]
        section.layers = [_C.LayerError(row.layer, row.name, row.form, 0.01, True) for row in section.layers]
        save(section, tmp_path / f"{i}.txt")
        results.append((in_blocks(graph, calibration=str(tmp_path / f"{i}.txt"), plan=plans), factor * x))
    assert Path(plans).read_text().count("\nend\n") == 2
    for plan, fitting in results:
        assert error(run(graph, plan, fitting), run(graph, None, fitting)) < 1e-5


def test_ranges_of_other_weights_correct_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ranges.txt"
    calibrate(linear(True), [2 + values(3, 70)], path)
    graph = _C.Graph()
    x = graph.input("x", [3, 70])
    weights = {"weight": values(24, 70, seed=7), "bias": values(24)}
    graph.output(graph.add("linear", [x], weights=weights, name="product"))
    graph.optimize()
    plan = in_blocks(graph, calibration=str(path))
    assert plan.grids
    assert not plan.corrected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mean 0 1.5 -2", "mean 0", "'mean' has no values"),
        ("mean 0 1.5 -2", "mean", "an index is not"),
        ("mean 0 1.5 -2", "mean 0 nan", "a mean is not"),
        ("mean 0 1.5 -2", "mean 0 1e999", "a mean is not"),
        ("mean 0 1.5", "mean 7 1.5", "means are out of order"),
        (" corrected\n", " so\n", "neither 'corrected' nor"),
    ],
)
def test_files_that_are_refused(old: str, new: str, message: str) -> None:
    table = _C.RangeTable()
    rows = [_C.LayerError(0, "a", "bytes", 0.5, True)]
    means = [_C.BlobMeans(4, [0.25] * 3000), _C.BlobMeans(0, [1.5, -2])]
    table.set(_C.RangeSection("s", "w", "mse", layers=rows, means=means))
    text = table.format()
    assert _C.RangeTable.parse(text).sections == table.sections
    assert [row.blob for row in table.sections[0].means] == [0, 4]
    with pytest.raises(_C.Error, match=message):
        _C.RangeTable.parse(text.replace(old, new, 1))
    for wrong in ([_C.BlobMeans(-1, [1])], [_C.BlobMeans(1, [1]), _C.BlobMeans(1, [1])], [_C.BlobMeans(1, [np.inf])]):
        with pytest.raises(_C.Error, match="means of blob"):
            table.set(_C.RangeSection("s", "w", "mse", means=wrong))
