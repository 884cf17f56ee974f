"""What `shapes_over_time` calls, in which order: models, inputs and sequences of sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

# What each case calls first, which tunes, and what Dynamo is to see besides, as it compiles again for sizes of one and
# for equal ones.
_IMAGES = (25, 3, 4, 0, 21, 139, 850, 999)
FIRST: dict[str, tuple[int, ...]] = {
    "fixed": _IMAGES,
    "growing": _IMAGES,
    "cycle60": _IMAGES,
    "cycle300": _IMAGES,
    "random": _IMAGES,
    "zipf": _IMAGES,
    "large_fixed": _IMAGES,
    "large_cycle60": _IMAGES,
    "large_zipf": _IMAGES,
    # Sizes that change the graph itself: tokens, or images so small that a layer vanishes.
    "one_then_many": (1, 5, 9),
    "many_then_one": (5, 9, 1),
    "one_by_turns": (1, 5, 9),
    "growing_from_one": (1, 5, 9),
    "decoding": (7, 9, 1),
    "small_then_large": (2, 32, 48),
}
CASES = tuple(FIRST)
_TOKENS = ("one_then_many", "many_then_one", "one_by_turns", "growing_from_one", "decoding")
WIDTH = 256


def sequence(case: str, calls: int) -> list[int]:
    """A number for each call, from which its sizes follow."""
    random = np.random.default_rng(0)
    case = case.removeprefix("large_")  # the same of larger images
    if case in ("fixed", "one_then_many", "many_then_one", "small_then_large"):
        return [{"fixed": 7, "one_then_many": 5, "many_then_one": 1, "small_then_large": 32}[case]] * calls
    if case == "one_by_turns":
        return [(1, 5)[i % 2] for i in range(calls)]
    if case == "decoding":  # a prompt, then one token for long
        return [1 if i % 30 else int(random.integers(2, 65)) for i in range(calls)]
    if case in ("growing", "growing_from_one"):
        return [1 + i % (1000 if case == "growing" else 100) for i in range(calls)]
    if case.startswith("cycle"):
        kinds = int(case.removeprefix("cycle"))
        return [i % kinds for i in range(calls)]
    if case == "random":
        return [int(n) for n in random.integers(0, 1000, calls)]
    return [int(n) - 1 for n in np.minimum(random.zipf(1.2, calls), 1000)]


def inputs_of(case: str, number: int) -> list[np.ndarray[Any, Any]]:
    """One call's."""
    random = np.random.default_rng(number)
    if case == "growing":
        shapes: list[tuple[int, ...]] = [(1, 1, 64), (1, 4, 1 + number, 16), (1, 4, 1 + number, 16)]
    elif case in _TOKENS:
        shapes = [(1, number, WIDTH)]
    elif case == "small_then_large":
        shapes = [(1, 3, number, number)]
    else:
        least = 112 if case.startswith("large_") else 24
        shapes = [(1, 3, least + number % 20, least + number // 20)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def open_axes(case: str) -> list[dict[int, str]]:
    """By input: its axes of open sizes, and their names."""
    if case == "growing":
        return [{}, {2: "t"}, {2: "t"}]
    return [{1: "t"} if case in _TOKENS else {2: "h", 3: "w"}]


def model_of(case: str, threads: int) -> Any:
    """A torch module."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    return (_decoder() if case == "growing" else _attention() if case in _TOKENS else _convolutions()).eval()


def _decoder() -> Any:
    import torch
    from torch import nn

    class Block(nn.Module):
        """One step of decoding, with a cache that grows by one position."""

        def __init__(self, width: int = 64, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down, self.norm = (
                nn.Linear(width, 4 * width),
                nn.Linear(4 * width, width),
                nn.LayerNorm(width),
            )

        def forward(self, x: Any, keys: Any, values: Any) -> Any:
            def split(t: Any) -> Any:
                return t.view(1, 1, self.heads, -1).transpose(1, 2)

            keys = torch.cat([keys, split(self.k(x))], 2)
            values = torch.cat([values, split(self.v(x))], 2)
            weights = (split(self.q(x)) @ keys.transpose(2, 3) * 0.25).softmax(-1)
            read = self.norm(self.out((weights @ values).transpose(1, 2).reshape(1, 1, -1)) + x)
            return self.down(self.up(read).relu()) + read, keys, values

    return Block()


def _convolutions() -> Any:
    from torch import nn

    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))


def _attention() -> Any:
    from torch import nn

    class Attention(nn.Module):
        """Tokens that read each other."""

        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

        def forward(self, x: Any) -> Any:
            weights = (self.q(x) @ self.k(x).transpose(1, 2) * WIDTH**-0.5).softmax(-1)
            return self.out(weights @ x)

    return Attention()
