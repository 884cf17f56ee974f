"""The weights that a region's nets were made from: which belong together, and whether they ever stay as they are."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch

import softneuro

# Preparations one after the other, no call between them finding its net ready, after which the host takes over.
CHANGES_BORNE = 16
_numbers = itertools.count(1)
# About what a TensorImpl takes, and where in it pointers are. Only prefetches depend on it.
_TENSOR_BYTES, _POINTER_WORDS = 192, 6
_TensorBase = torch._C.TensorBase


@dataclass
class WeightSet:
    """One model's weights for a region; several where compiled code is shared between modules."""

    number: int
    # Of the tensors, not of their memory: a new parameter may take that over, with a version counter of its own.
    alive: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    stamps: softneuro._C.TensorStamps | None = None  # cleared when one of them dies


def version_of(tensor: torch.Tensor) -> int:
    """Counter of in-place changes; inference tensors have none."""
    return 0 if tensor.is_inference() else tensor._version


_version = operator.attrgetter("_version")


def versions_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """The counters of many tensors, as quickly as Python can."""
    try:
        return list(map(_version, tensors))
    except RuntimeError:  # inference tensors among them
        return list(map(version_of, tensors))


def addresses_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Of many tensors' memory, as quickly as Python can. Raises RuntimeError for tensors that have none."""
    return list(map(torch.Tensor.data_ptr, tensors))


def lines_of(tensors: Sequence[torch.Tensor]) -> softneuro._C.CacheLines:
    """What a look at each of many tensors will read, as Python sees them and as torch keeps them."""
    lines = softneuro._C.CacheLines()
    for tensor in tensors:
        lines.add(id(tensor), object.__sizeof__(tensor))
        lines.add(tensor._cdata, _TENSOR_BYTES)
        lines.add_pointed(tensor._cdata, _POINTER_WORDS)  # storage, version counter
    return lines


def stamps_of(tensors: Sequence[torch.Tensor]) -> softneuro._C.TensorStamps:
    """To ask whether tensors have been written to or lie elsewhere; clear it before one of them dies."""
    return softneuro._C.TensorStamps(tensors, _TensorBase.__dict__["_version"], _TensorBase.__dict__["data_ptr"])


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def guards_of(weights: Sequence[torch.Tensor], watched: Set[int]) -> list[tuple[int, int, bool]]:
    """Address, bytes and whether to compare them all, as region_put takes them."""
    guards = []
    for index, weight in enumerate(weights):
        # Elements that surely lie one after the other from data_ptr on, whatever their order.
        count = weight.numel() if is_dense(weight) else min(weight.numel(), 1)
        guards.append((weight.data_ptr(), weight.element_size() * count, index in watched))
    return guards


class Weights:
    """The sets of weights of one region. Its methods are called under the region's lock, but for those that forget."""

    def __init__(self, handle: str) -> None:
        self._handle = handle
        self._sets: dict[tuple[int, ...], WeightSet] = {}  # by the weights' addresses
        self._prepared: set[tuple[Hashable, int]] = set()  # signature and number of the set
        self._changes = 0  # preparations in a row that only changed weights made necessary
        self._hits = 0  # of the region's nets after the last preparation
        self._died = False  # weights that a net was made from

    def set_of(self, weights: Sequence[torch.Tensor]) -> WeightSet:
        """The set that these tensors form, with its guard on their lives."""
        key = tuple(w.data_ptr() for w in weights)
        known = self._sets.get(key)
        if known is not None and all(ref() is w for ref, w in zip(known.alive, weights, strict=True)):
            return known
        if known is not None:
            self._drop(known.number, key)
        made = WeightSet(next(_numbers))
        made.alive = [weakref.ref(w, self._on_death(made.number, key)) for w in weights]
        made.stamps = stamps_of(weights)
        self._sets[key] = made
        return made

    def stamps(self, weights: Sequence[torch.Tensor]) -> softneuro._C.TensorStamps | None:
        """To ask whether the set that these tensors form is as it was; None if no net was made from it."""
        known = self._sets.get(tuple(w.data_ptr() for w in weights))
        if known is None or any(ref() is not w for ref, w in zip(known.alive, weights, strict=True)):
            return None
        return known.stamps

    def _on_death(self, number: int, key: tuple[int, ...]) -> Callable[[Any], None]:
        weak = weakref.ref(self)

        def dead(_: Any) -> None:
            if (owner := weak()) is not None:
                owner._drop(number, key)

        return dead

    def _drop(self, number: int, key: tuple[int, ...]) -> None:
        if (known := self._sets.get(key)) is not None and known.number == number:
            del self._sets[key]
            if known.stamps is not None:
                known.stamps.clear()
            self._died = True
            self._prepared = {item for item in self._prepared if item[1] != number}
        softneuro._C.region_drop_weight_set(self._handle, number)

    def bear_preparation(self, signature: Hashable, weights: Sequence[torch.Tensor]) -> bool:
        """Notes that a net is to be made; False once changed weights were the reason at every one of many calls."""
        key = (signature, self.set_of(weights).number)
        changed = key in self._prepared or self._died
        idle = softneuro._C.region_hits(self._handle) == self._hits
        self._changes = self._changes + 1 if changed and idle else 0
        self._prepared.add(key)
        self._died = False
        return self._changes < CHANGES_BORNE

    def note_call(self) -> None:
        """After the call that a net was made for: hits from here on are calls that needed no preparation."""
        self._hits = softneuro._C.region_hits(self._handle)

    def addresses(self) -> tuple[int, ...]:
        """Of the set last seen, in the op's order; empty if they are gone."""
        return next(reversed(self._sets), ())

    def forget(self, addresses: Set[int] | None, *, watch: bool = True) -> bool:
        """Drops the nets made from weights at these addresses, or all. False if there are no such weights.

        Without `watch` the references to the weights go, too: torch.utils.swap_tensors refuses what has any.
        """
        sets = [(s, key) for key, s in list(self._sets.items()) if addresses is None or not addresses.isdisjoint(key)]
        for weight_set, key in sets:
            if watch:
                softneuro._C.region_drop_weight_set(self._handle, weight_set.number)
            else:
                self._drop(weight_set.number, key)
        return bool(sets)

    def start_afresh(self) -> None:
        """Bears as many changes as at the beginning."""
        self._changes = 0
        self._died = False
        self._prepared.clear()
