"""From a module that compiled code is given to the values that it takes from it, dictionary by dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.source import (
    AttrSource,
    DictGetItemSource,
    LocalSource,
    UnspecializedBuiltinNNModuleSource,
    UnspecializedNNModuleSource,
    UnspecializedParamBufferSource,
)
from torch._guards import Source

CONSTANTS = (bool, int, float, complex, str, type(None), torch.dtype, torch.device)
_MODULES = (UnspecializedNNModuleSource, UnspecializedBuiltinNNModuleSource)
_ATTRIBUTES = (AttrSource, UnspecializedParamBufferSource)


def _kind(value: object) -> str | None:
    if isinstance(value, torch.nn.Module):
        return "module"
    if type(value) is dict:
        return "dict"
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return "tensor"
    if type(value) in CONSTANTS or (type(value) is tuple and all(type(item) in CONSTANTS for item in value)):
        return "constant"
    return None


@dataclass(frozen=True)
class Step:
    """From one value to an item of it, or of its __dict__."""

    kind: str
    holder: int
    own_dict: bool
    key: str | int

    def take(self, values: list[Any]) -> Any:
        """The value, after all those before it."""
        holder = values[self.holder]
        return (holder.__dict__ if self.own_dict else holder)[self.key]


class Paths:
    """From a root module to values, each after the one that holds it."""

    def __init__(self, root: Source, module: torch.nn.Module) -> None:
        self.steps: list[Step] = []  # to all values but the first
        self._values: list[Any] = [module]
        self._places: dict[Source, int | None] = {root: 0}

    def find(self, source: Source) -> tuple[Any, str] | None:
        """The value at a source and its kind; None if dictionaries alone do not lead there."""
        place = self.place(source)
        if place is None:
            return None
        return self._values[place], self.steps[place - 1].kind if place else "module"

    def place(self, source: Source) -> int | None:
        """The number of its value, the root's being 0, each step's the next."""
        if source not in self._places:
            base = getattr(source, "base", None)
            holder = self.place(base) if base is not None else None
            self._places[source] = holder if holder is None or type(source) in _MODULES else self._next(source, holder)
        return self._places[source]

    def _next(self, source: Any, holder: int) -> int | None:
        value = self._values[holder]
        if type(source) in _ATTRIBUTES and isinstance(value, torch.nn.Module):
            items, key = value.__dict__, source.member
        elif type(source) is DictGetItemSource and type(value) is dict and type(source.index) in (str, int):
            items, key = value, source.index
        else:
            return None
        if key not in items or (kind := _kind(items[key])) is None:
            return None
        self.steps.append(Step(kind, holder, items is not value, key))
        self._values.append(items[key])
        return len(self.steps)


def root_of(source: Any) -> LocalSource | None:
    """The local variable from which a source is reached."""
    while (base := getattr(source, "base", None)) is not None:
        source = base
    return source if type(source) is LocalSource else None
