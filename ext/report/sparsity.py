"""Zeros in a model's weights, layer by layer, and what routines that make use of them gain."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from softneuro import _C


@dataclass(frozen=True)
class LayerSparsity:
    """One weight. Seconds are those of the fastest routines measured for its layer alone, None where none was."""

    name: str
    type: str
    shape: tuple[int, ...]
    zeros: float  # a fraction; of a quantized weight, of the values that the bytes stand for
    pattern: str  # "2:4": so many of so many neighbours are not zero; "4x1": zeros lie in blocks of rows by columns
    note: str = ""  # why no layer of softneuro's has it
    dense_s: float | None = None
    sparse_s: float | None = None


@dataclass(frozen=True)
class Sparsity:
    """What is known of a model. Seconds are those that its plans are expected to take, None where costs are guesses."""

    layers: list[LayerSparsity]
    dense_s: float | None = None  # of the best plan that makes no use of zeros
    plan_s: float | None = None  # of the best one

    @property
    def zeros(self) -> float:
        """The fraction of zeros in all weights."""
        sizes = [math.prod(layer.shape) for layer in self.layers]
        total = sum(layer.zeros * size for layer, size in zip(self.layers, sizes, strict=True))
        return total / max(sum(sizes), 1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**dataclasses.asdict(self), "zeros": self.zeros}

    def __str__(self) -> str:
        rows = [("layer", "type", "weight", "zeros", "pattern", "dense", "sparse"), *map(_row, self.layers)]
        widths = [max(len(row[i]) for row in rows) for i in range(7)]
        aligned = (
            "  ".join(cell.rjust(width) if i in (3, 5, 6) else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        )  # fmt: skip
        notes = ["", *(f"  {layer.note}" if layer.note else "" for layer in self.layers)]
        lines = [(line + note).rstrip() for line, note in zip(aligned, notes, strict=True)]
        return "\n".join([*lines, f"zeros in all: {100 * self.zeros:.1f} %", *self._gain()])

    def _gain(self) -> list[str]:
        if not self.dense_s or not self.plan_s:
            return []
        text = f"best plan without use of zeros {1e3 * self.dense_s:.3f} ms, with it {1e3 * self.plan_s:.3f} ms"
        return [f"{text}: {self.dense_s / self.plan_s:.2f} times as fast"]


@dataclass
class Measured:
    """Seconds from plans, by layer's name; those of one name add up, as it runs more than once."""

    dense: dict[str, float] = field(default_factory=dict)
    sparse: dict[str, float] = field(default_factory=dict)
    dense_s: float = 0
    plan_s: float = 0
    whole: bool = True  # whether all of it is known

    def add(self, dense_s: float, plan_s: float, layers: Iterable[Mapping[str, Any]]) -> None:
        """Adds a region's plan; `layers` have name, measured, dense_s and sparse_s, which may be None or infinite."""
        for layer in layers:
            self.whole = self.whole and bool(layer["measured"])
            for seconds, by_name in ((layer["dense_s"], self.dense), (layer["sparse_s"], self.sparse)):
                if seconds is not None and math.isfinite(seconds):
                    by_name[layer["name"]] = by_name.get(layer["name"], 0) + seconds
        self.whole = self.whole and dense_s > 0
        self.dense_s += dense_s
        self.plan_s += plan_s

    def report(self, layers: Iterable[LayerSparsity]) -> Sparsity:
        """The layers with what was measured for them."""
        found = [
            dataclasses.replace(layer, dense_s=self.dense.get(layer.name), sparse_s=self.sparse.get(layer.name))
            for layer in layers
        ]
        known = self.whole and self.plan_s > 0
        return Sparsity(found, self.dense_s if known else None, self.plan_s if known else None)


def look_at(name: str, kind: str, weight: Any, note: str = "") -> LayerSparsity:
    """A weight, given as to Graph.add."""
    traits = _C.weight_traits(weight)
    (most, of), (rows, columns) = traits["n_of_m"], traits["block"]
    patterns = [f"{most}:{of}"] if of else []
    patterns += [f"{rows}x{columns}"] if rows * columns > 1 else []
    return LayerSparsity(name, kind, tuple(traits["shape"]), traits["zeros"], ", ".join(patterns), note)


def _row(layer: LayerSparsity) -> tuple[str, ...]:
    shape = "x".join(map(str, layer.shape))
    times = ["" if seconds is None else f"{1e3 * seconds:.3f} ms" for seconds in (layer.dense_s, layer.sparse_s)]
    return (_printable(layer.name), layer.type, shape, f"{100 * layer.zeros:.1f} %", layer.pattern, *times)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
