"""Small ONNX models, run through the provider and on the CPU provider."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softneuro import error_measure

if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
    collect_ignore_glob = ["test_*.py"]


@functools.cache
def host_saturates() -> bool:
    """Whether the CPU provider's products of unsigned and signed bytes are wrong.

    On x86 without dot products of bytes it adds two products in 16 bits, which do not hold them if weights are large.
    """
    import onnxruntime
    from onnx import helper

    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    model = make_model(
        [node], {"x": [1, 4]}, {"y": None}, {"w": np.full((4, 1), 127, np.int8)}, types={"x": "UINT8", "y": "INT32"}
    )
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": np.full((1, 4), 255, np.uint8)})
    return bool(result.item() != 4 * 255 * 127)


@pytest.fixture(autouse=True)
def _exact_sums(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the CPU provider add products in 32 bits where it otherwise saturates, in tests that are marked for it.

    It does so by weights that are unsigned, too. For some models of signed bytes it then has no kernel, and fails to
    load them: it gives no right result on this CPU in either mode, so the test is skipped here and runs on others.
    """
    if request.node.get_closest_marker("exact_host") is None or not host_saturates():
        return
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Missing

    plain = onnxruntime.InferenceSession.__init__

    def exact(self: Any, model: Any, sess_options: Any = None, *arguments: Any, **others: Any) -> None:
        settings = sess_options or onnxruntime.SessionOptions()
        settings.add_session_config_entry("session.x64quantprecision", "1")
        try:
            plain(self, model, settings, *arguments, **others)
        except Missing:
            pytest.skip("the host's sums of bytes saturate on this CPU, and it has no exact kernel for this model")

    monkeypatch.setattr(onnxruntime.InferenceSession, "__init__", exact)


@pytest.fixture(autouse=True)
def own_database(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Costs and verdicts of other tests or of the user decide nothing here."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(folder))
    return folder


def make_model(
    nodes: Sequence[Any],
    inputs: dict[str, Sequence[int | str]],
    outputs: dict[str, Sequence[int | str] | None],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 18,
    types: dict[str, str] | None = None,
) -> bytes:
    """A serialised model. Names of dimensions are symbols. Inputs and outputs that are not in `types` are FLOAT."""
    from onnx import TensorProto, helper, numpy_helper, shape_inference

    def info(name: str, shape: Sequence[int | str] | None) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DataType.Value((types or {}).get(name, "FLOAT")), shape)

    graph = helper.make_graph(
        list(nodes),
        "test",
        [info(*item) for item in inputs.items()],
        [info(*item) for item in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    domains = {node.domain: 1 for node in nodes if node.domain} | {"": opset}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*item) for item in domains.items()])
    model.ir_version = min(model.ir_version, 10)  # that the oldest runtime reads
    model = shape_inference.infer_shapes(model)
    return bytes(model.SerializeToString())


def cpu_session(model: bytes | str) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def whole_session(model: bytes | str, **options: Any) -> Any:
    """A session in which every node runs through the provider."""
    import onnxruntime

    from softneuro import providers

    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return providers.session(model, settings, **{"tune": "off", "min_region_size": 1, "never_worse": False, **options})


def relative_error(result: np.ndarray, reference: np.ndarray) -> float:
    assert result.shape == reference.shape, (result.shape, reference.shape)
    assert result.dtype == reference.dtype
    np.testing.assert_array_equal(np.isnan(result), np.isnan(reference))
    return error_measure.relative_error(result, reference)


def random_feeds(session: Any, sizes: dict[str, int] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    feeds = {}
    for entry in session.get_inputs():
        shape = [size if isinstance(size, int) else (sizes or {})[size] for size in entry.shape]
        kind = entry.type.removeprefix("tensor(").removesuffix(")")
        values = random.standard_normal(shape) if kind.startswith("float") else random.integers(0, 2, shape)
        if kind in ("uint8", "int8"):
            values = random.integers(0, 256, shape) - (128 if kind == "int8" else 0)
        feeds[entry.name] = values.astype({"float": "float32"}.get(kind, kind))
    return feeds


def check_same(ours: Any, cpu: Any, feeds: dict[str, np.ndarray], bound: float = 1e-5) -> None:
    """The two sessions agree, and the provider has run nets, not the host's fallback."""
    for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
        assert relative_error(result, reference) <= bound


def reasons(session: Any) -> list[str]:
    """Why regions were left to the host at run time."""
    from softneuro.providers.report import events

    return [event["host"] for event in events(session) if event["event"] == "prepared" and event["host"]]


def check_model(model: bytes, sizes: dict[str, int] | None = None, bound: float = 1e-5, **options: Any) -> None:
    """Every node runs through the provider, and as on the CPU provider."""
    ours, cpu = whole_session(model, **options), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu, sizes), bound)
    assert not reasons(ours)
