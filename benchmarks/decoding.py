"""The next token of Llama-160M with Hugging Face's static cache, by eager, inductor and softneuro in turns.

A prompt of 128 words is in a cache for 256. Every call takes one word, and the cache is set back after it, so that all
calls do the same. Milliseconds are medians. Weights: the bytes that a token has to read, all but the embedding's, over
the time; in brackets as a share of what the memory gives. Error: relative L2 of the logits to eager's. Cold: seconds of
the first call.

With `--int4` the weights are integers of four bits, 32 of which share a scale, as torchao has them
(`IntxWeightOnlyConfig`). The input's embedding stays as it is.

Part of `python -m benchmarks.transformers --decode`.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from rich.console import Console

from benchmarks import hugging_face
from softneuro import device
from softneuro.error_measure import relative_error

NETWORK, PROMPT, CACHE = "llama_160m", 128, 256
HEADER = ["way", "ms", "tokens/s", "weights GB/s", "error", "cold s"]
WAYS: dict[str, Callable[[torch.nn.Module], Any]] = {
    "eager": lambda model: model,
    "inductor": lambda model: torch.compile(model, backend="inductor", dynamic=False),
    "softneuro": lambda model: torch.compile(model, backend="softneuro", dynamic=False),
}


class Decoder:
    """A way to run the model, with a cache of its own that holds the prompt."""

    def __init__(self, model: torch.nn.Module, make: Callable[[torch.nn.Module], Any], prompt: torch.Tensor) -> None:
        self.cache = hugging_face.library().StaticCache(config=model.config, max_cache_len=CACHE)
        model(prompt, cache=self.cache, use_cache=True)
        self.run = make(copy.deepcopy(model))

    def __call__(self, word: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.run(word, cache=self.cache, use_cache=True).logits
        return logits

    def back(self) -> None:
        """Takes the last word out of the cache."""
        for layer in self.cache.layers:
            layer.cumulative_length.sub_(1)


def in_four_bits(model: torch.nn.Module) -> torch.nn.Module:
    """The model with the weights of its linear layers in groups of 32 integers."""
    logging.getLogger("torchao").setLevel(logging.ERROR)
    from torchao.quantization import IntxWeightOnlyConfig, PerGroup, quantize_

    quantize_(model, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
    return model


def _bytes(weight: Any) -> int:
    if hasattr(weight, "qdata"):
        return int(weight.qdata.numel()) // 2 + int(weight.scale.numel()) * int(weight.scale.element_size())
    return int(weight.numel()) * int(weight.element_size())


def read_bytes(model: Any) -> int:
    """What one token reads of the weights. Of the embedding it reads a row."""
    every = sum(map(_bytes, model.parameters()))
    embedding = model.get_input_embeddings().weight
    tied = embedding is model.get_output_embeddings().weight
    return every if tied else every - _bytes(embedding)


def measure(
    rounds: int, threads: int, quick: bool, console: Console, *, int4: bool = False
) -> tuple[dict[str, Any], list[str], list[list[str]]]:
    """Figures by way; a table's header and rows."""
    model, _ = hugging_face.build(NETWORK)
    if int4:
        in_four_bits(model)
    prompt = hugging_face.words(model.config, 1, PROMPT)
    word = hugging_face.words(model.config, 1, 1)
    decoders: dict[str, Decoder] = {}
    seconds: dict[str, float] = {}
    results: dict[str, torch.Tensor] = {}
    samples: dict[str, list[float]] = {}
    with torch.no_grad():
        for name, make in WAYS.items():
            torch.compiler.reset()
            try:
                decoder = Decoder(model, make, prompt)
                start = time.perf_counter()
                decoder(word)
                seconds[name] = time.perf_counter() - start
                decoder.back()
                results[name] = decoder(word).clone()
                decoder.back()
            except Exception as error:  # what cannot run it must not end the others' run
                console.print(f"[dim]no {name}: {type(error).__name__}: {str(error)[:120]}[/dim]")
                continue
            decoders[name], samples[name] = decoder, []
        for _ in range(rounds):
            for name, decoder in decoders.items():
                time.sleep(0.01)  # torch's threads stay awake for 5 to 8 ms
                for timed in (False, True, True, True):
                    start = time.perf_counter()
                    decoder(word)
                    took = time.perf_counter() - start
                    decoder.back()
                    samples[name] += [took * 1e3] if timed else []
    size, memory = read_bytes(model), device.bandwidth("read", "memory", threads, 0.2)
    measured, rows = {}, []
    for name, found in samples.items():
        ms = median(found)
        rate, away = size / (ms * 1e-3), relative_error(results[name], results["eager"])
        measured[name] = {"ms": ms, "bytes_per_s": rate, "error": away, "first_call_s": seconds[name]}
        cells = [f"{ms:.2f}", f"{1e3 / ms:.1f}", f"{rate / 1e9:.1f} ({rate / memory:.0%})", f"{away:.1e}"]
        rows.append([name, *cells, f"{seconds[name]:.1f}"])
    return measured, HEADER, rows
