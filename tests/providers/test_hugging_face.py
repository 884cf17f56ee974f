"""Tiny transformers of Hugging Face's, exported in two opsets: one spells attention out, the other has an op for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "onnxscript")):
    pytest.skip("torch, transformers or onnxscript is not installed", allow_module_level=True)
import numpy as np
import onnxruntime
import torch

from benchmarks import hugging_face
from softneuro import providers
from tests.providers.conftest import cpu_session, reasons, relative_error

SAME_WHEN_TINY = {"bert_base_16", "minilm_l6"}  # both are BERT in other sizes
NETWORKS = [name for name in hugging_face.NETWORKS if name not in SAME_WHEN_TINY]
SPELT_OUT, AS_ONE_OP = 20, 23  # opsets
BOUND = 1e-4


def session(model: torch.nn.Module, inputs: hugging_face.Inputs, path: Path, opset: int, shapes: Any = None) -> Any:
    with torch.no_grad():
        torch.onnx.export(
            model,
            (),
            str(path),
            kwargs=inputs,
            dynamic_shapes=shapes,
            opset_version=opset,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3  # that some nodes stay with the CPU provider is known
    return providers.session(str(path), settings, tune="off", never_worse=False)


def check(ours: Any, model: torch.nn.Module, inputs: hugging_face.Inputs) -> None:
    """Every output is the model's own, and nets have run."""
    results = ours.run(None, {entry.name: inputs[entry.name].numpy() for entry in ours.get_inputs()})
    with torch.no_grad():
        expected = hugging_face.tensors(model(**inputs))
    for result, reference in zip(results, expected, strict=True):
        assert relative_error(result, reference.numpy()) <= BOUND
    assert not reasons(ours)


@pytest.mark.parametrize("name", NETWORKS)
def test_attention_spelt_out_with_masks(name: str, tmp_path: Path) -> None:
    model, inputs = hugging_face.build(name, tiny=True, masked=True, batch=2)
    check(session(model, inputs, tmp_path / "model.onnx", SPELT_OUT), model, inputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_attention_as_one_op_without_masks(name: str, tmp_path: Path) -> None:
    model, inputs = hugging_face.build(name, tiny=True, batch=2)
    check(session(model, inputs, tmp_path / "model.onnx", AS_ONE_OP), model, inputs)


@pytest.mark.parametrize("name", ["bert_base", "llama_grouped"])
@pytest.mark.parametrize(("opset", "masked"), [(SPELT_OUT, False), (AS_ONE_OP, True)])
def test_the_other_way_around(name: str, opset: int, masked: bool, tmp_path: Path) -> None:
    model, inputs = hugging_face.build(name, tiny=True, masked=masked, batch=2)
    check(session(model, inputs, tmp_path / "model.onnx", opset), model, inputs)


@pytest.mark.parametrize("opset", [SPELT_OUT, AS_ONE_OP])
def test_padding_on_the_left(opset: int, tmp_path: Path) -> None:
    """The first words of the shorter text see no key at all: what the CPU provider makes of them counts."""
    model, inputs = hugging_face.build("gpt2", tiny=True, masked=True, batch=2)
    ours = session(model, inputs, tmp_path / "model.onnx", opset)
    inputs["attention_mask"] = inputs["attention_mask"].flip(-1).contiguous()
    feeds = {name: tensor.numpy() for name, tensor in inputs.items()}
    (result,), (reference,) = (run.run(None, feeds) for run in (ours, cpu_session(str(tmp_path / "model.onnx"))))
    assert relative_error(np.nan_to_num(result), np.nan_to_num(reference)) <= BOUND
    np.testing.assert_array_equal(np.isnan(result), np.isnan(reference))
    assert not reasons(ours)


# torch.onnx writes a RotaryEmbedding for open sizes in opset 23 that the CPU provider refuses for a batch.
@pytest.mark.parametrize(("opset", "batches"), [(SPELT_OUT, (2, 3)), (AS_ONE_OP, (1, 1))])
def test_batch_and_length_change(opset: int, batches: tuple[int, int], tmp_path: Path) -> None:
    model, inputs = hugging_face.build("llama_grouped", tiny=True, masked=True, batch=2)
    shapes = {name: dict.fromkeys(range(tensor.dim()), torch.export.Dim.DYNAMIC) for name, tensor in inputs.items()}
    ours = session(model, inputs, tmp_path / "model.onnx", opset, shapes)
    for batch, size in zip(batches, (12, 7), strict=True):
        _, inputs = hugging_face.build("llama_grouped", tiny=True, masked=True, batch=batch, size=size)
        check(ours, model, inputs)
