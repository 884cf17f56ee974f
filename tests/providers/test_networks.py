"""torchvision networks exported by torch.onnx: claimed whole, right, and the same graph as through the other door."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "onnxscript")):
    pytest.skip("torch, torchvision or onnxscript is not installed", allow_module_level=True)
import torch

from benchmarks import models
from softneuro.providers.report import events
from softneuro.torch_backend import registry
from tests.providers.conftest import cpu_session, reasons, relative_error, whole_session

QUICK = ["squeezenet1_1"]
SLOW = ["resnet18", "mobilenet_v2", "resnet50", "mobilenet_v3_large", "vgg16", "inception_v3", "densenet121"]
# Their own sizes, where a smaller one is another network: VGG's adaptive pooling would have to enlarge, and Inception
# with random weights magnifies rounding errors (PyTorch against itself in float64: 3e-2 at 96, 2e-5 at 299).
SIZES = {"inception_v3": 299, "vgg16": 224}


def export(name: str, folder: Path, dynamic: bool = False) -> tuple[str, Any, Any]:
    model, example = models.build(name, SIZES.get(name, 64), batch=2)
    for parameter in model.parameters():  # an exporter may leave out what is zero
        if not bool(parameter.any()):
            torch.nn.init.normal_(parameter, std=0.05)
    path = str(folder / f"{name}.onnx")
    shapes = ({0: torch.export.Dim.DYNAMIC},) if dynamic else None
    torch.onnx.export(model, (example,), path, dynamo=True, external_data=False, dynamic_shapes=shapes, verbose=False)
    return path, model, example


def check(name: str, folder: Path) -> None:
    path, model, example = export(name, folder)
    ours = whole_session(path, min_region_size=2)
    feeds = {ours.get_inputs()[0].name: example.numpy()}
    result, reference = ours.run(None, feeds)[0], cpu_session(path).run(None, feeds)[0]
    assert relative_error(result, reference) <= 1e-4
    assert not reasons(ours)
    assert events(ours)[0]["host"] == []
    (prepared,) = (event for event in events(ours) if event["event"] == "prepared")

    torch._dynamo.reset()
    torch.set_num_threads(2)
    compiled = torch.compile(model, backend="softneuro", options={"tune": "off", "never_worse": False})
    before = set(map(id, registry.all_regions()))
    with torch.no_grad():
        compiled(example)
    regions = [region for region in registry.all_regions() if id(region) not in before]
    hashes = [shaped.plan.graph_hash for region in regions for shaped in region.shaped.values() if shaped.plan]
    assert [prepared["graph_hash"]] == hashes


@pytest.mark.parametrize("name", QUICK)
def test_network(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_large_network(name: str, tmp_path: Path) -> None:
    check(name, tmp_path)


@pytest.mark.slow
def test_dynamic_batch(tmp_path: Path) -> None:
    path, _, example = export("resnet18", tmp_path, dynamic=True)
    ours, cpu = whole_session(path, min_region_size=2), cpu_session(path)
    (name,) = (entry.name for entry in ours.get_inputs())
    for batch in (1, 3):
        feeds = {name: np.repeat(example.numpy()[:1], batch, axis=0)}
        assert relative_error(ours.run(None, feeds)[0], cpu.run(None, feeds)[0]) <= 1e-4
    assert not reasons(ours)
