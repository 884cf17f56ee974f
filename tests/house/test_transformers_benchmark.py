"""The benchmark of transformers: its networks as tiny ones, through every part of it."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "onnxscript", "rich")):
    pytest.skip("torch, transformers, onnxscript or rich is not installed", allow_module_level=True)
import torch

from benchmarks import attention, decoding, hugging_face, peers, transformers


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hugging_face, "build", partial(hugging_face.build, tiny=True))
    monkeypatch.setattr(transformers, "peak_of", lambda threads: 1e12)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)


def figures(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> Any:
    path = folder / "figures.json"
    monkeypatch.setattr(sys, "argv", ["transformers", *arguments, "--json", str(path)])
    transformers.main()
    return json.loads(path.read_text())


def test_all_contenders_of_a_network_with_masks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(peers.PEERS, "softneuro", partial(peers.softneuro, tune="off"))
    names = ["softneuro", "softneuro_exported", "softneuro_onnx", "eager", "onnxruntime", "onnxruntime_transformers"]
    arguments = ["--models", "llama_grouped+mask", "--peers", ",".join(names), "--rounds", "1"]
    found = figures(monkeypatch, tmp_path, *arguments)["llama_grouped+mask"]
    assert set(found["ms"]) == set(names), capsys.readouterr().out
    assert all(ms > 0 for ms in found["ms"].values())
    assert all(error <= 1e-4 for error in found["error"].values())
    assert found["error"]["eager"] == 0


def test_what_is_counted_are_products() -> None:
    """Those of the layers, of attention with all keys, and of the words."""
    model, inputs = hugging_face.build("gpt2")
    words, width, wide = inputs["input_ids"].numel(), 32, 128
    layer = 2 * words * width * (3 * width + width + 2 * wide) + 2 * 2 * words * words * width
    assert transformers.operations("gpt2", inputs) == 2 * layer + 2 * words * width * model.config.vocab_size


def test_what_no_peer_is_named_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for arguments in (["--models", "bert"], ["--peers", "softneuro,none"], ["--peers", "eager"]):
        with pytest.raises(SystemExit):
            figures(monkeypatch, tmp_path, *arguments)


@pytest.mark.parametrize("more", [[], ["--int4"]])
def test_decoding(more: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoding, "PROMPT", 8)
    monkeypatch.setattr(decoding, "CACHE", 16)
    ways = {name: decoding.WAYS[name] for name in ("eager", "softneuro")}
    monkeypatch.setattr(decoding, "WAYS", ways)
    monkeypatch.setattr(decoding.device, "bandwidth", lambda *_: 1e10)
    measured = figures(monkeypatch, tmp_path, "--decode", "--rounds", "4", *more)
    assert set(measured) == set(ways)
    assert measured["eager"]["error"] == 0
    assert measured["softneuro"]["error"] <= 1e-4


def test_a_word_taken_back_leaves_the_cache_as_it_was() -> None:
    model, inputs = hugging_face.build(decoding.NETWORK)
    with torch.no_grad():
        decoder = decoding.Decoder(model, lambda model: model, inputs["input_ids"])
        first = decoder(inputs["input_ids"][:, :1])
        second = decoder(inputs["input_ids"][:, :1])
        decoder.back()
        assert torch.equal(decoder(inputs["input_ids"][:, :1]), second)
        assert not torch.equal(first, second)


@pytest.mark.parametrize("known", [True, False])
def test_attention(known: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the op and without it."""
    plain = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(attention, "own", lambda: plain if known else None)
    monkeypatch.setattr(attention.device, "fma_peak", lambda *_: 1e12)
    measured = figures(monkeypatch, tmp_path, "--attention", "--quick")
    assert set(measured) == {f"{kind} 128" for kind in attention.KINDS}
    for found in measured.values():
        assert set(found["ms"]) == {"torch", *(["softneuro"] if known else [])}
        assert max(found["error"].values()) < 1e-5
