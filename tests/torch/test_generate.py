"""Hugging Face's generate with a static cache: few compilations, and the tokens that eager gives."""

from __future__ import annotations

import pytest
import torch

from benchmarks.models import torchvision_models

torchvision_models()  # some of its ops do not fit the installed torch, which the library's import would meet
transformers = pytest.importorskip("transformers")

WORDS, PROMPT, NEW = 100, 7, 12


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=WORDS,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def compilations(monkeypatch):
    """How many graphs are compiled."""
    from softneuro.torch_backend import backend

    counted = []
    original = backend.compile_inference

    def compile_inference(*arguments, **named):
        counted.append(original(*arguments, **named))
        return counted[-1]

    monkeypatch.setattr(backend, "compile_inference", compile_inference)
    return counted


def compile_config():
    """The library compiles by itself on accelerators alone, unless it is told otherwise."""
    config = transformers.CompileConfig(backend="softneuro", fullgraph=False)
    config.mode, config.options = None, {"tune": "off", "never_worse": False}
    config._compile_all_devices = True
    return config


@pytest.mark.parametrize(("batch", "beams"), [(1, 1), (8, 1), (2, 3)])
def test_static_cache(batch, beams, model, compilations, no_grad):
    torch._dynamo.reset()
    model.__dict__.pop("_compiled_call", None)
    words = torch.randint(2, WORDS, (batch, PROMPT))
    given = {
        "max_new_tokens": NEW,
        "do_sample": False,
        "num_beams": beams,
        "cache_implementation": "static",
        "pad_token_id": 0,
    }
    expected = model.generate(words, **given)
    result = model.generate(words, compile_config=compile_config(), **given)
    assert torch.equal(result, expected)
    if beams > 1:
        return  # which the library never compiles
    assert 1 <= len(compilations) <= 2
    assert torch.equal(model.generate(words, compile_config=compile_config(), **given), expected)
    assert len(compilations) <= 2
    assert any(compiled.regions for compiled in compilations)


def test_mode_of_the_library(model, compilations, no_grad):
    """It gives inductor's, whatever the backend is."""
    torch._dynamo.reset()
    model.__dict__.pop("_compiled_call", None)
    words = torch.randint(2, WORDS, (1, PROMPT))
    config = transformers.CompileConfig(backend="softneuro", fullgraph=False)
    config._compile_all_devices = True
    assert config.mode == "reduce-overhead"
    given = {"max_new_tokens": 3, "do_sample": False, "cache_implementation": "static", "pad_token_id": 0}
    expected = model.generate(words, **given)
    assert torch.equal(model.generate(words, compile_config=config, **given), expected)
    assert compilations
