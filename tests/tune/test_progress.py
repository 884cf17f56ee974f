"""The progress bar of tuning."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import tuner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def small_graph() -> softneuro.Graph:
    graph = softneuro.Graph()
    weight = np.ones((4, 3, 3, 3), np.float32)
    graph.output(graph.add("conv2d", [graph.input("x", (1, 3, 9, 9))], weights={"weight": weight}))
    graph.optimize()
    return graph


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_on_a_terminal_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    softneuro.tune(small_graph(), {"threads": 1}, label="tuning it")
    assert ("tuning it: " in errors.getvalue()) == (stream is Terminal)


def test_a_listener_takes_the_place_of_the_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    errors = Terminal()
    monkeypatch.setattr(sys, "stderr", errors)
    told: list[tuple[int, int]] = []
    token = tuner.listener.set(lambda done, total: told.append((done, total)))
    try:
        softneuro.tune(small_graph(), {"threads": 1})
    finally:
        tuner.listener.reset(token)
    assert told
    assert all(0 <= done <= total for done, total in told)
    assert told[-1][0] == told[-1][1]
    assert errors.getvalue() == ""
