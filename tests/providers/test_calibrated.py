"""The option `calibration`: ranges that runs give, and sessions that spend max_error on bytes by them."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import softneuro
from softneuro import _C, error_measure, providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model, reasons
from tests.providers.quantized import Maker
from tests.providers.scripts import run_script

SIZE = 512
QUICK: dict[str, Any] = {"time_budget_s": 0.5, "threads": 1}
# Layers run in bytes by these, whatever is faster on a machine.
BYTES: dict[str, Any] = {**QUICK, "never_worse": False, "keep": "*:qint8"}


def network(rows: int | str = 1, layers: int = 3, seed: int = 0, cut: bool = False) -> bytes:
    """Large products of few rows, where bytes win by the memory that weights take."""
    random = np.random.default_rng(seed)
    nodes, constants, x = [], {}, "x"
    for i in range(layers):
        constants[f"w{i}"] = (random.standard_normal((SIZE, SIZE)) / SIZE**0.5).astype(np.float32)
        constants[f"b{i}"] = random.standard_normal(SIZE).astype(np.float32)
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [f"g{i}"], name=f"gemm{i}"))
        nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], name=f"relu{i}"))
        x = f"r{i}"
        if cut and i == layers // 2:  # by a type that regions do not have
            nodes.append(helper.make_node("Cast", [x], ["wide"], to=TensorProto.DOUBLE))
            nodes.append(helper.make_node("Cast", ["wide"], ["narrow"], to=TensorProto.FLOAT))
            x = "narrow"
    return make_model(nodes, {"x": (rows, SIZE)}, {x: (rows, SIZE)}, constants)


def batches(count: int = 4, rows: int = 1, seed: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.standard_normal((rows, SIZE)).astype(np.float32) for _ in range(count)]


def routines(session: Any) -> list[str]:
    """Of the regions as they are now."""
    last = {(e["region"], e["inputs"]): e for e in events(session) if e["event"] == "prepared"}
    return [layer["descriptor"] for e in last.values() for layer in e.get("layers", [])]


def in_bytes(session: Any) -> int:
    """Layers that are not in floats."""
    forms = ("qint8", "dynamic_linear/", "linear_blocks/")
    return sum(any(form in routine for form in forms) for routine in routines(session))


def error_of(session: Any, model: bytes, data: list[np.ndarray]) -> float:
    cpu = cpu_session(model)
    pairs = [(session.run(None, {"x": x}), cpu.run(None, {"x": x})) for x in data]
    return max(error_measure.worst_error(*pair) for pair in pairs)


def sections(path: Path) -> list[Any]:
    return list(_C.RangeTable.load(str(path)).sections)


def test_a_file(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "deep" / "ranges.txt"
    found = providers.calibrate(model, batches(), path, options=QUICK)
    assert (found.path, found.batches, found.regions) == (str(path), 4, 1)
    (section,) = sections(path)
    assert section.batches == 4
    assert section.method == "percentile:99.99"
    session = providers.session(model, calibration=path, max_error=0.05, **BYTES)
    assert in_bytes(session) == 3
    assert 1e-4 < error_of(session, model, batches()) < 0.05
    assert in_bytes(providers.session(model, calibration=path, **QUICK)) == 0  # max_error is too small


def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    providers.calibrate(network(layers=2), batches(1), tmp_path / "ranges.txt", options=QUICK)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["ranges.txt"]


def test_open_shapes_share_a_section(tmp_path: Path) -> None:
    model, path = network("n"), tmp_path / "ranges.txt"
    providers.calibrate(model, [*batches(2), *batches(2, rows=3)], path, options=QUICK)
    (section,) = sections(path)
    assert section.batches == 4
    session = providers.session(model, calibration=path, max_error=0.05, **BYTES)
    assert error_of(session, model, batches(1)) < 0.05
    assert in_bytes(session) == 3
    assert error_of(session, model, batches(2, rows=2)) < 0.05


def test_several_regions(tmp_path: Path) -> None:
    model, path = network(layers=4, cut=True), tmp_path / "ranges.txt"
    assert providers.calibrate(model, batches(), path, options=QUICK).regions == 2
    assert len(sections(path)) == 2
    session = providers.session(model, calibration=path, max_error=0.05, **BYTES)
    assert in_bytes(session) == 4


def test_first_runs_are_observed() -> None:
    model, data = network(), batches(5)
    session = providers.session(model, calibration="online:3", max_error=0.05, **BYTES)
    for x in data[:3]:
        assert not routines(session)
        assert error_of(session, model, [x]) < 1e-5
    assert error_of(session, model, data[3:]) < 0.1  # three rows do not tell all
    assert in_bytes(session) == 3
    again = providers.session(model, calibration="online:3", max_error=0.05, **BYTES)
    assert in_bytes(again) == 3  # before any run


def test_inputs_outside_of_what_was_observed_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, path = network(), tmp_path / "ranges.txt"
    data = [x.clip(-2, 3) for x in batches()]
    providers.calibrate(model, data, path, options=QUICK)
    session = providers.session(model, calibration=path, max_error=0.05, **QUICK)
    assert in_bytes(session) >= 2
    for x in data:
        session.run(None, {"x": x})
    assert not [event for event in events(session) if event["event"] == "outside"]
    for value in (-2.6, 7.5, np.nan):
        session.run(None, {"x": np.append(data[0][:, 1:], [[value]], 1).astype(np.float32)})
    first, second = (event for event in events(session) if event["event"] == "outside")
    assert (first["calls"], first["inputs"][0]["value"]) == (1, pytest.approx(-2.6))
    assert second["looked"] >= 6
    row = {"name": "x", "calls": 2, "least": -2, "most": 3, "value": 7.5}
    assert (second["calls"], second["inputs"]) == (2, [row])
    told = [line for line in capfd.readouterr().err.splitlines() if "calibrate again" in line]
    assert len(told) == 1
    assert "input 'x' has -2.6" in told[0]
    assert "input x was outside of what calibration observed, -2 to 3, in 2 of " in providers.explain(session)


def test_collecting_ends_with_the_session(tmp_path: Path) -> None:
    model, path = network("n"), tmp_path / "ranges.txt"
    session = providers.session(model, calibration=f"collect:{path}", calibration_method="min_max", **QUICK)
    for x in batches(3):
        assert error_of(session, model, [x]) < 1e-5
    assert not path.exists()
    del session
    (section,) = sections(path)
    assert (section.method, section.batches) == ("min_max", 3)


def test_a_compiled_model_needs_no_ranges(tmp_path: Path) -> None:
    """Another process with neither the file nor options nor a cache runs the plan, and refuses no error."""
    model, path, out = network(), tmp_path / "ranges.txt", tmp_path / "tuned.onnx"
    tuned = providers.tune(model, batches(8), max_error=0.05, calibration=path, out=out, options=BYTES)
    assert 1e-4 < tuned.chosen.error <= 0.05
    path.unlink()
    assert 1e-4 < error_of(providers.session(out, threads=1), model, batches(8)) < 0.06
    np.save(tmp_path / "x.npy", batches(1)[0])
    done = run_script(
        f"""
from softneuro import providers
from softneuro.providers.report import events
session = providers.session({str(out)!r}, threads=1)
x = np.load({str(tmp_path / "x.npy")!r})
np.save({str(tmp_path / "y.npy")!r}, session.run(None, {{"x": x}})[0])
print([layer["descriptor"] for e in events(session) for layer in e.get("layers", [])])
""",
        SOFTNEURO_CACHE_DIR=str(tmp_path / "other"),
    )
    assert done.returncode == 0, done.stderr
    assert any(form in done.stdout for form in ("qint8", "dynamic_linear", "linear_blocks"))
    expected = cpu_session(model).run(None, {"x": batches(1)[0]})[0]
    assert 1e-4 < error_measure.relative_error(np.load(tmp_path / "y.npy"), expected) < 0.05


def test_grids_of_a_quantized_model_stay(tmp_path: Path) -> None:
    m = Maker()
    w, scales = m.weight(4, 3, 3, 3, axis=0)
    x = m.qdq(m.add("Conv", m.qdq("x", 0.02, 117), w, m.bias(4, 0.02, scales)), 6 / 255, 40)
    m.add("Conv", x, m.constant(np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32) / 6))
    m.rename("y")
    model = m.model({"x": (2, 3, 9, 8)}, ["y"])
    data = [np.random.default_rng(i).standard_normal((2, 3, 9, 8)).astype(np.float32) for i in range(3)]
    path = tmp_path / "ranges.txt"
    providers.calibrate(model, data, path, options={**QUICK, "min_region_size": 1})
    (section,) = sections(path)
    assert 1 <= len(section.blobs) < 4  # of the reals alone
    session = providers.session(model, calibration=path, max_error=0.05, min_region_size=1, **QUICK)
    assert error_of(session, model, data) < 0.3


class Reader:
    """As onnxruntime.quantization has them."""

    def __init__(self, data: list[np.ndarray]) -> None:
        self.left = [{"x": x} for x in data]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop(0) if self.left else None


def write_set(folder: Path, x: np.ndarray, name: str) -> None:
    folder.mkdir(parents=True)
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(x, name).SerializeToString())


def data_of(kind: str, folder: Path) -> Any:
    data = batches(3)
    if kind == "npz":
        np.savez(folder / "x.npz", x=np.stack(data))
        return folder / "x.npz"
    if kind in ("set", "sets"):
        for i, x in enumerate(data):
            write_set(folder / "data" / f"test_data_set_{i}", x, "x" if i else "")
        return str(folder / "data" / "test_data_set_2" if kind == "set" else folder / "data")
    return {
        "arrays": data,
        "doubles": [x.astype(np.float64) for x in data],
        "dicts": ({"x": x} for x in data),
        "tuples": [(x, "label") for x in data],
        "reader": Reader(data),
    }[kind]


@pytest.mark.parametrize("kind", ["arrays", "doubles", "dicts", "tuples", "reader", "npz", "set", "sets"])
def test_data(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "ranges.txt"
    model = onnx.load_from_string(network(layers=1))
    done = providers.calibrate(model, data_of(kind, tmp_path), path, method="min_max", options=QUICK)
    assert done.batches == (1 if kind == "set" else 3)
    used = batches(3)[-done.batches :]
    assert sections(path)[0].blobs[0].most == max(x.max() for x in used)


def test_one_batch_of_npz_and_few_batches(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=batches(1)[0])
    for data, most in ((tmp_path / "x.npz", 9), (batches(5), 1)):
        assert providers.calibrate(network(), data, tmp_path / "r", num_batches=most, options=QUICK).batches == 1


def write_broken_npz(folder: Path) -> None:
    whole = folder / "whole.npz"
    np.savez_compressed(whole, x=np.stack(batches(3)))
    data = whole.read_bytes()
    (folder / "BROKEN_torn.npz").write_bytes(data[:-20])
    (folder / "BROKEN_torn_early.npz").write_bytes(data[:100])
    (folder / "BROKEN_changed.npz").write_bytes(data[:2000] + bytes(500) + data[2500:])
    with (folder / "BROKEN_array.npz").open("wb") as file:
        np.save(file, batches(1)[0])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no batch"),
        (7, "not batches"),
        ({"x": batches(1)[0]}, "not batches"),
        ([{"z": batches(1)[0]}], "has z and lacks x"),
        ([()], "lacks x"),
        ([np.zeros((1, 7), np.float32)], r"shape \[1, 7\]"),
        ([np.zeros((1, SIZE), np.int64)], "int64"),
        (["text"], "is a str"),
        ("/nonexistent", "no data at"),
        (__file__, "is no data"),
        ("EMPTY", "neither"),
        ("BROKEN", "is no tensor"),
        ("BROKEN.npz", "cannot be read"),
        ("BROKEN_torn.npz", "cannot be read"),
        ("BROKEN_torn_early.npz", "cannot be read"),
        ("BROKEN_changed.npz", "cannot be read"),
        ("BROKEN_array.npz", "cannot be read"),
    ],
)
def test_data_that_is_refused(data: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "BROKEN").mkdir()
    (tmp_path / "BROKEN" / "input_0.pb").write_bytes(b"nonsense")
    (tmp_path / "BROKEN.npz").write_bytes(b"nonsense")
    write_broken_npz(tmp_path)
    given = tmp_path / data if isinstance(data, str) and data.startswith(("EMPTY", "BROKEN")) else data
    with pytest.raises(softneuro.Error, match=message) as found:
        providers.calibrate(network(), given, tmp_path / "ranges.txt", options=QUICK)
    assert "\n" not in str(found.value)
    assert not (tmp_path / "ranges.txt").exists()


def test_values_that_are_not_finite_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = batches(2)
    data[1][0, 0] = np.nan
    with caplog.at_level(logging.WARNING):
        providers.calibrate(network(), data, tmp_path / "ranges.txt", options=QUICK)
    assert "batch 1 has NaN" in caplog.text
    assert sections(tmp_path / "ranges.txt")[0].blobs[0].nonfinite == 1


def test_files_that_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.txt"
    foreign.write_text("something else\n")
    with pytest.raises(softneuro.Error, match="no file of ranges"):
        providers.calibrate(network(), batches(1), foreign, options=QUICK)
    assert foreign.read_text() == "something else\n"
    for path, message in ((foreign, "no file of ranges"), (tmp_path / "missing", "missing")):
        with pytest.raises(Exception, match=message):
            providers.session(network(), calibration=path, **QUICK)
    with pytest.raises(softneuro.Error, match="how many"):
        providers.session(network(), calibration="online:0", **QUICK)
    with pytest.raises(softneuro.Error, match="known are"):
        providers.calibrate(network(), batches(1), tmp_path / "r", method="magic")
    with pytest.raises(softneuro.Error, match="nothing to calibrate"):
        providers.calibrate(network(layers=1), batches(1), tmp_path / "r", options={"min_region_size": 50})


def test_ranges_of_other_weights_and_models(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ranges.txt"
    providers.calibrate(network(), batches(), path, options=QUICK)
    other = network(seed=5)
    session = providers.session(other, calibration=path, max_error=0.05, **QUICK)
    assert error_of(session, other, batches()) < 0.06
    assert re.search("stale", capfd.readouterr().err)
    foreign = network(layers=2)
    session = providers.session(foreign, calibration=path, max_error=0.05, never_worse=False, **QUICK)
    assert re.search("has no ranges", capfd.readouterr().err)
    assert in_bytes(session) == 0
    assert not reasons(session)


def test_threads_during_the_first_runs() -> None:
    """One run at a time is observed; others have the host's results meanwhile."""
    model = network("n")
    session, cpu = providers.session(model, calibration="online:3", max_error=0.05, **BYTES), cpu_session(model)

    def run(x: np.ndarray) -> float:
        return error_measure.worst_error(session.run(None, {"x": x}), cpu.run(None, {"x": x}))

    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(run, batches(24)))
    assert max(*errors, *map(run, batches(6))) < 0.1
    assert in_bytes(session) == 3
