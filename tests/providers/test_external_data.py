"""Models whose weights are in a file of their own, as those above 2 GiB have to be."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.test_sessions import f32


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]
    model = onnx.load_from_string(make_model(nodes, {"x": (3, 40)}, {"y": None}, {"w": f32(40, 50), "v": f32(50, 30)}))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size >= 4 * (40 * 50 + 50 * 30)
    return path


def test_session(outside: Path) -> None:
    ours, cpu = providers.session(outside, tune="off", min_region_size=1), cpu_session(str(outside))
    check_same(ours, cpu, random_feeds(cpu))
    assert not reasons(ours)


@pytest.mark.parametrize("embedded", ["0", "1"])
def test_compiled_model(outside: Path, tmp_path: Path, embedded: str) -> None:
    """It needs the weights' file no more."""
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", str(tmp_path / "compiled.onnx"))
    settings.add_session_config_entry("ep.context_embed_mode", embedded)
    providers.session(outside, settings, tune="off", min_region_size=1)
    cpu = cpu_session(str(outside))
    (tmp_path / "weights.bin").unlink()
    check_same(providers.session(tmp_path / "compiled.onnx", tune="off"), cpu, random_feeds(cpu))


@pytest.mark.parametrize("limit", [2**31, 1000])
def test_convert(outside: Path, tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large for one file is written into two, whatever was there before."""
    monkeypatch.setattr(importlib.import_module("softneuro.providers.convert"), "_LARGEST_FILE", limit)
    out = tmp_path / "out.onnx"
    out.with_name("out.onnx.data").write_bytes(b"old" * 10000)
    replaced = providers.convert(outside, out, tune="off", min_region_size=1)
    assert len(replaced) == 2
    assert (out.stat().st_size < 4000) == (limit == 1000)
    settings = onnxruntime.SessionOptions()
    settings.register_custom_ops_library(providers.get_library_path())
    written = onnxruntime.InferenceSession(out, settings, providers=["CPUExecutionProvider"])
    cpu = cpu_session(str(outside))
    feeds = random_feeds(cpu)
    np.testing.assert_allclose(written.run(None, feeds)[0], cpu.run(None, feeds)[0], rtol=1e-4, atol=1e-4)
