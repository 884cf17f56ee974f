"""The caller's SessionOptions: what they say counts, and they are left as they were."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from softneuro import Error, providers
from softneuro.providers import library
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model, random_feeds, reasons
from tests.providers.quantized import Maker, averages, steps
from tests.providers.test_quantized_units import host_nodes
from tests.providers.test_sessions import f32

MODEL = make_model(
    [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
    {"x": (1, 2, 5, 5)},
    {"y": None},
    {"w": f32(3, 2, 3, 3)},
)


UNFUSED = {"session.disable_quant_qdq": "1"}


def entries(values: dict[str, str]) -> onnxruntime.SessionOptions:
    settings = onnxruntime.SessionOptions()
    for key, value in values.items():
        settings.add_session_config_entry(key, value)
    return settings


def untouched(settings: onnxruntime.SessionOptions) -> bool:
    for key in ("softneuro.report", "ep.softneuroexecutionprovider.tune", "ep.softneuroexecutionprovider.report"):
        with pytest.raises(Exception, match="does not have configuration"):
            settings.get_session_config_entry(key)
    return not settings.has_providers()


def test_options_are_used_twice() -> None:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    for _ in range(2):
        session = providers.session(MODEL, settings, tune="off", min_region_size=1)
        assert session.get_providers()[0] == providers.get_ep_name()
        assert "1 thread(s)" in providers.explain(session)
        assert untouched(settings)
    plain = onnxruntime.InferenceSession(MODEL, settings, providers=["CPUExecutionProvider"])
    assert plain.get_providers() == ["CPUExecutionProvider"]


def test_options_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a wrong option nor a corrupt model leaves anything in them, or a file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = onnxruntime.SessionOptions()
    with pytest.raises(Error, match="no option"):
        providers.session(MODEL, settings, no_such_option=1)
    with pytest.raises(Exception, match=r"[Pp]rotobuf"):
        providers.session(b"\x00no model", settings)
    assert untouched(settings)
    assert not list(tmp_path.iterdir())
    assert providers.session(MODEL, settings, tune="off", min_region_size=1).run(None, {"x": f32(1, 2, 5, 5)})


def test_providers_of_the_caller() -> None:
    """Those of the call come first; the caller's stay what they were."""
    providers.register()
    settings = onnxruntime.SessionOptions()
    settings.add_provider_for_devices(library.devices(), {"tune": "off", "threads": "1"})
    for _ in range(2):
        with pytest.warns(UserWarning, match="already been configured"):
            session = providers.session(MODEL, settings, tune="off", threads=2, min_region_size=1)
        assert "2 thread(s)" in providers.explain(session)
    assert settings.has_providers()
    assert onnxruntime.InferenceSession(MODEL, settings).get_providers()[0] == providers.get_ep_name()


@pytest.mark.exact_host
def test_weights_that_the_runtime_has_made_floats_of() -> None:
    """Where it is told not to compute with integers. What is between has its scales still."""
    m = Maker()
    w, scales = m.weight(8, 16, 3, 3, axis=0)
    conv = m.add("Conv", m.qdq("x", 0.02), w, m.bias(8, 0.02, scales), pads=[1, 1, 1, 1])
    m.qdq(m.add("Sigmoid", m.qdq(conv, 0.05)), 1 / 255, 0)
    m.rename("y")
    model = m.model({"x": (1, 16, 12, 12)}, ["y"])
    x = {"x": f32(1, 16, 12, 12)}
    for values, dtype in ({}, "qint8"), (UNFUSED, "float32"):
        ours = providers.session(model, entries(values), tune="off", never_worse=False, min_region_size=1)
        cpu = onnxruntime.InferenceSession(model, entries(values), providers=["CPUExecutionProvider"])
        apart = steps(ours.run(None, x)[0], cpu.run(None, x)[0], 1 / 255)
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= 0.01 * apart.size
        assert not host_nodes(ours)
        layers = [layer for event in events(ours) for layer in event.get("layers", [])]
        assert [layer["descriptor"].split(":")[1] for layer in layers if layer["type"] == "conv2d"] == [dtype]


def test_the_host_inside_a_region_is_told_the_same() -> None:
    """Averages that are ties tell whether it computes them with integers."""
    model = averages()
    feeds = random_feeds(cpu_session(model), {"n": 1, "h": 14, "w": 18})
    hosts = []
    for values in {}, UNFUSED:
        ours = providers.session(model, entries(values), tune="off", never_worse=False, min_region_size=1)
        cpu = onnxruntime.InferenceSession(model, entries(values), providers=["CPUExecutionProvider"])
        result = ours.run(None, feeds)[0]
        assert reasons(ours)  # the host runs it
        hosts.append(cpu.run(None, feeds)[0])
        np.testing.assert_array_equal(result, hosts[-1])
    assert np.any(hosts[0] != hosts[1])


def test_the_host_of_a_region_adds_as_the_session_is_told() -> None:
    """On CPUs where sums of bytes saturate otherwise. What Resize takes is the runtime's own choice there."""
    m = Maker(19)
    weight = m.dq(m.constant(np.full((4, 8, 1, 1), 127, np.int8)), np.float32(0.01), 0, "INT8")
    y = m.q(m.add("Conv", m.dq("x", 0.02, 0), weight), 0.2, 0)
    m.dq(m.add("Resize", y, "", m.constant(np.float32([1, 1, 1, 1.3])), mode="nearest"), 0.2, 0)
    m.rename("y")
    model = m.model({"x": ("n", 8, 1, 16)}, ["y"], {"x": "UINT8"})
    settings = entries({"session.x64quantprecision": "1"})
    ours = providers.session(model, settings, tune="off", min_region_size=1, never_worse=False)
    result = ours.run(None, {"x": np.full((1, 8, 1, 16), 200, np.uint8)})[0]
    assert reasons(ours)
    np.testing.assert_allclose(result, 203 * 0.2, rtol=1e-6)
