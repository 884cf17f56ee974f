"""The caller's SessionOptions: what they say counts, and they are left as they were."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnxruntime
import pytest
from onnx import helper

from softneuro import Error, providers
from softneuro.providers import library
from tests.providers.conftest import make_model
from tests.providers.test_sessions import f32

MODEL = make_model(
    [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
    {"x": (1, 2, 5, 5)},
    {"y": None},
    {"w": f32(3, 2, 3, 3)},
)


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
