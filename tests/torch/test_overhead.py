"""The benchmark of what surrounds a net reaches into the backend, so it breaks where that changes."""

import torch

from benchmarks import overhead


def test_it_measures() -> None:
    with torch.no_grad():
        figures = overhead.measure(1, 20, torch.zeros(1024))
    assert figures.pop("weights") == 6
    assert all(us >= 0 for us in figures.values()), figures
