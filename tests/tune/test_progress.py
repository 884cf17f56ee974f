"""The progress bar of tuning."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

import softneuro


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    graph = softneuro.Graph()
    weight = np.ones((4, 3, 3, 3), np.float32)
    graph.output(graph.add("conv2d", [graph.input("x", (1, 3, 9, 9))], weights={"weight": weight}))
    graph.optimize()
    softneuro.tune(graph, {"threads": 1}, label="tuning it")
    assert ("tuning it: " in errors.getvalue()) == (stream is Terminal)
