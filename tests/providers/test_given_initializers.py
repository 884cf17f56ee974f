"""Initializers that the program gives in the place of the model's: its values are computed with, or the host runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.test_sessions import f32

node = helper.make_node
ENTRIES = {"tune": "off", "min_region_size": 1}
WEIGHTS = {"w": f32(16, 8, 3, 3), "b": f32(16, seed=1), "v": f32(16, 5, seed=2), "top": np.array(1.5, np.float32)}
NODES = [
    node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
    node("Clip", ["c", "", "top"], ["k"]),
    node("GlobalAveragePool", ["k"], ["p"]),
    node("Flatten", ["p"], ["f"]),
    node("MatMul", ["f", "v"], ["y"]),
]


def model(weights: dict[str, np.ndarray] = WEIGHTS, n: int | str = "n") -> bytes:
    return make_model(NODES, {"x": (n, 8, 6, 6)}, {"y": None}, weights)


class Given:
    """Options with these initializers, whose memory they borrow."""

    def __init__(self, values: dict[str, np.ndarray], entries: dict[str, str] | None = None) -> None:
        self.values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in values.items()}
        self.options = onnxruntime.SessionOptions()
        for name, value in self.values.items():
            self.options.add_initializer(name, value)
        for key, entry in (entries or {}).items():
            self.options.add_session_config_entry(key, entry)


def check(ours: Any, weights: dict[str, np.ndarray]) -> None:
    """As the model that has the weights itself. The CPU provider may use a convolution's own: it lays it out ahead."""
    cpu = cpu_session(model(weights))
    check_same(ours, cpu, random_feeds(cpu, {"n": 2}))


@pytest.mark.parametrize("names", [["w"], ["b"], ["v"], ["top"], ["w", "b", "v", "top"]], ids="-".join)
def test_values(names: list[str]) -> None:
    given = {name: np.asarray(-0.5 * WEIGHTS[name] + 1, np.float32) for name in names}
    keep = Given(given)
    ours = providers.session(model(), keep.options, **ENTRIES)
    check(ours, {**WEIGHTS, **given})
    assert events(ours)[0]["claimed"] == len(NODES)
    assert not reasons(ours)


def test_sessions_share_them() -> None:
    """Whatever the file has. Those of another session are not taken for them, nor is a plan's verdict."""
    other = {name: -value for name, value in WEIGHTS.items() if name != "top"}
    keep = Given({name: other[name] for name in ("w", "v")})
    expected = {**WEIGHTS, "w": other["w"], "v": other["v"]}
    sessions = [providers.session(model(), keep.options, **ENTRIES) for _ in range(2)]
    tuned = {"min_region_size": 1, "time_budget_s": 0.1, "never_worse": False}
    sessions.append(providers.session(model(n=2), keep.options, **tuned))
    plain = providers.session(model(), **ENTRIES)
    for ours in sessions:
        check(ours, expected)
    check(plain, WEIGHTS)


def test_names_that_the_model_has_not() -> None:
    keep = Given({"nobody": f32(3), "c": f32(2, 16, 6, 6)})
    check(providers.session(model(), keep.options, **ENTRIES), WEIGHTS)


@pytest.mark.parametrize("value", [f32(16, 7), f32(16, 5).astype(np.float64)], ids=["shape", "type"])
def test_what_does_not_fit(value: np.ndarray) -> None:
    """As on the CPU provider: of another shape it computes with it, of another type it refuses."""
    feeds = random_feeds(cpu_session(model()), {"n": 2})

    def outcome(make: Any) -> Any:
        keep = Given({"v": value})
        try:
            return make(keep.options).run(None, feeds)[0]
        except Exception as error:
            return type(error).__name__

    expected = outcome(lambda options: onnxruntime.InferenceSession(model(), options, ["CPUExecutionProvider"]))
    result = outcome(lambda options: providers.session(model(), options, **ENTRIES))
    if isinstance(expected, str):
        assert isinstance(result, str)
    else:
        np.testing.assert_allclose(result, expected, 1e-4, 1e-5)


def test_other_files_of_the_session_are_left_alone(tmp_path: Path) -> None:
    """The values are read by a session with the program's options."""
    keep = Given({"v": -WEIGHTS["v"]})
    keep.options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    keep.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    keep.options.enable_profiling = True
    keep.options.profile_file_prefix = str(tmp_path / "profile")
    plain = onnxruntime.InferenceSession(model(), keep.options, providers=["CPUExecutionProvider"])
    saved = (tmp_path / "optimised.onnx").read_bytes()
    del plain
    before = len(list(tmp_path.iterdir()))
    keep.options.optimized_model_filepath = ""
    ours = providers.session(model(), keep.options, **ENTRIES)
    check(ours, {**WEIGHTS, "v": -WEIGHTS["v"]})
    assert (tmp_path / "optimised.onnx").read_bytes() == saved
    assert len(list(tmp_path.iterdir())) == before + 1  # the session's own profile
    del ours


def body_model() -> bytes:
    """An If whose branches read an outer weight, and one of their own."""
    info = helper.make_tensor_value_info
    own = onnx.numpy_helper.from_array(f32(5, seed=3), "own")

    def branch(name: str, op: str) -> Any:
        nodes = [node("MatMul", ["x", "v"], [f"{name}_m"]), node(op, [f"{name}_m", "own"], [f"{name}_a"]),
                 node("Relu", [f"{name}_a"], [f"{name}_y"])]  # fmt: skip
        return helper.make_graph(nodes, name, [], [info(f"{name}_y", TensorProto.FLOAT, None)], [own])

    main = [node("If", ["k"], ["y"], then_branch=branch("then", "Add"), else_branch=branch("else", "Mul"))]
    return make_model(main, {"x": ("n", 16), "k": ()}, {"y": None}, {"v": WEIGHTS["v"]}, types={"k": "BOOL"})


def test_bodies() -> None:
    keep = Given({"v": -WEIGHTS["v"], "own": f32(5, seed=4)})
    ours = providers.session(body_model(), keep.options, **ENTRIES)
    cpu = onnxruntime.InferenceSession(body_model(), keep.options, providers=["CPUExecutionProvider"])
    assert max(event["claimed"] for event in events(ours)) == 3
    for k in (True, False):
        check_same(ours, cpu, {"x": f32(3, 16), "k": np.array(k)})


def context(path: Path) -> dict[str, str]:
    return {"ep.context_enable": "1", "ep.context_file_path": str(path), "ep.context_embed_mode": "1"}


def test_compiled_models(tmp_path: Path) -> None:
    """Given when it is loaded; given when it is written, after which it stays what can be given."""
    path = tmp_path / "saved.onnx"
    providers.session(model(n=2), Given({}, context(path)).options, **ENTRIES)
    new = {"w": -WEIGHTS["w"], "v": -WEIGHTS["v"]}
    keep, same = Given(new), Given({"w": WEIGHTS["w"]})
    check(providers.session(path, **ENTRIES), WEIGHTS)
    check(providers.session(path, same.options, strict=True, **ENTRIES), WEIGHTS)
    check(providers.session(path, keep.options, **ENTRIES), {**WEIGHTS, **new})
    with pytest.raises(Exception, match="other weights than the program gives"):
        providers.session(path, keep.options, strict=True, **ENTRIES)
    odd = Given({"v": f32(16, 7)})
    with pytest.raises(Exception, match=r"'v' itself.*not what the compiled model has"):
        providers.session(path, odd.options, **ENTRIES)

    path.unlink()
    first = Given({"v": new["v"]}, context(path))
    ours = providers.session(model(n=2), first.options, **ENTRIES)
    check(ours, {**WEIGHTS, "v": new["v"]})
    (kept,) = events(ours)[0]["host"]
    assert "the program gives 'v' itself" in kept["reason"]
    check(providers.session(path, **ENTRIES), WEIGHTS)
    again = Given({"v": new["v"]})
    check(providers.session(path, again.options, **ENTRIES), {**WEIGHTS, "v": new["v"]})


def test_external_ones(tmp_path: Path) -> None:
    """Weights of a file lie elsewhere; the runtime has them in the graph before any provider sees it."""
    proto = onnx.load_from_string(model())
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    other = {name: np.asarray(-0.5 * value + 1, np.float32) for name, value in WEIGHTS.items()}
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in other.values()]
    settings = onnxruntime.SessionOptions()
    settings.add_external_initializers(list(other), values)
    ours = providers.session(path, settings, **ENTRIES)
    check(ours, other)
    assert events(ours)[0]["claimed"] == len(NODES)
