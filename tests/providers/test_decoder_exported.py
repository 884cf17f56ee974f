"""A decoder as Hugging Face's exporter writes it for ONNX Runtime: models for the prompt and for the next token."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "onnxscript")):
    pytest.skip("torch, transformers or onnxscript is not installed", allow_module_level=True)
import numpy as np
import torch

from benchmarks import hugging_face
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, reasons, relative_error, whole_session

PROMPT = [3, 1, 4, 1, 5]


def export(folder: Path) -> None:
    transformers = hugging_face.library()
    if importlib.util.find_spec("transformers.exporters") is None:
        pytest.skip("this version of transformers has no exporter")
    from transformers.exporters.configs import OnnxConfig
    from transformers.exporters.exporter_onnx import OnnxExporter

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.tensor([PROMPT])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    exported = OnnxExporter().export_for_generation(model, inputs, OnnxConfig(dynamic=True, ort_fusions="cpu"))
    exported.save_pretrained(folder)


def generate(prompt: Any, step: Any) -> list[np.ndarray]:
    """Logits of every call, and the last caches."""
    made = prompt.run(None, {"input_ids": np.array([PROMPT]), "position_ids": np.arange(len(PROMPT))[None]})
    names = [entry.name for entry in step.get_inputs() if "cache" in entry.name]
    logits = [made[0]]
    for place in range(len(PROMPT), len(PROMPT) + 6):
        word = int(logits[-1][0, -1].argmax())
        feeds = {"input_ids": np.array([[word]]), "position_ids": np.array([[place]])}
        made = step.run(None, feeds | dict(zip(names, made[1:], strict=True)))
        logits.append(made[0])
    return [*logits, *made[1:]]


@pytest.mark.slow
def test_exported_for_generation(tmp_path: Path) -> None:
    export(tmp_path)
    paths = [str(tmp_path / f"{name}.onnx") for name in ("prefill", "decode")]
    ours, cpu = [whole_session(path) for path in paths], [cpu_session(path) for path in paths]
    for result, reference in zip(generate(*ours), generate(*cpu), strict=True):
        assert relative_error(result, reference) <= 1e-4
    for session in ours:
        assert not reasons(session)
        (partition,) = [event for event in events(session) if event["event"] == "partition"]
        assert partition["claimed"] == partition["nodes"]
