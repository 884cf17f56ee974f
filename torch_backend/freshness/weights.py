"""The weights that a region's nets were made from: which belong together, and whether they are what they were."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

import torch

import softneuro
from softneuro.torch_backend import _native
from softneuro.torch_backend.freshness import tensors
from softneuro.torch_backend.freshness.tensors import addresses_of

_Piece = tuple[int, int, list[int], list[int]]
_numbers = itertools.count(1)
_COMPARED_WHOLE = softneuro._C.WeightGuards.small  # bytes of a weight


class WeightSet(NamedTuple):
    """One model's weights for a region; several where compiled code is shared between modules."""

    number: int  # by which the op knows it
    # It watches the tensors, not their memory: a new parameter may take that over, with a version counter of its own.
    watch: _native.TensorWatch
    scan: softneuro._C.WeightScan  # for changes of bytes that nothing else shows


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def guards_of(weights: Sequence[torch.Tensor], watched: Set[int]) -> list[tuple[int, int, bool]]:
    """Address, bytes and whether to compare them all, as the core takes them."""
    guards = []
    for index, (weight, address) in enumerate(zip(weights, addresses_of(weights), strict=True)):
        # Elements that surely lie one after the other from data_ptr on, whatever their order.
        count = weight.numel() if is_dense(weight) else min(weight.numel(), 1)
        guards.append((address, weight.element_size() * count, index in watched))
    return guards


def _pieces_of(weights: Sequence[torch.Tensor], watched: Set[int]) -> list[_Piece]:
    """What the guards do not compare whole: address, bytes of an element, sizes, strides."""
    pieces = []
    for index, (weight, address) in enumerate(zip(weights, addresses_of(weights), strict=True)):
        if index not in watched and (weight.nbytes > _COMPARED_WHOLE or not is_dense(weight)):
            pieces.append((address, weight.element_size(), list(weight.shape), list(weight.stride())))
    return pieces


class Weights:
    """The sets of weights of one region."""

    def __init__(self, core: softneuro._C.Region) -> None:
        self._core = core
        self._sets: dict[tuple[int, ...], WeightSet] = {}  # by the weights' addresses

    def set_of(self, weights: Sequence[torch.Tensor]) -> WeightSet:
        """The set that these tensors form. Raises RuntimeError for tensors without memory."""
        key = tuple(addresses_of(weights))
        known = self._sets.get(key)
        if known is not None and known.watch.are(weights):
            return known
        if known is not None:
            self._drop(known.number, key)
        number = next(_numbers)
        watch = tensors.lives_of(weights, self._on_death(number, key))
        made = self._sets[key] = WeightSet(number, watch, softneuro._C.WeightScan())
        return made

    def scan_of(self, weights: Sequence[torch.Tensor], watched: Set[int]) -> softneuro._C.WeightScan | None:
        """The scan of the set, which knows the bytes as they are; None where guards compare all of them."""
        scan = self.set_of(weights).scan
        scan.learn(_pieces_of(weights, watched))
        return scan if scan.bytes else None

    def look(self, weights: Sequence[torch.Tensor]) -> WeightSet:
        """The same, with a watch on them as they are now."""
        known = self.set_of(weights)
        return known._replace(watch=tensors.now(known.watch, weights))

    def _on_death(self, number: int, key: tuple[int, ...]) -> Callable[[], None]:
        weak = weakref.ref(self)

        def dead() -> None:
            if (owner := weak()) is not None:
                owner._drop(number, key)

        return dead

    def _drop(self, number: int, key: tuple[int, ...]) -> None:
        if (known := self._sets.get(key)) is not None and known.number == number:
            del self._sets[key]
            known.watch.let_go()
        self._core.drop_weight_set(number)

    def addresses(self) -> tuple[int, ...]:
        """Addresses of the set last seen, in the op's order; empty if they are gone."""
        return next(reversed(self._sets), ())

    def scans(self, addresses: Set[int] | None = None) -> list[softneuro._C.WeightScan]:
        """Scans of the sets with weights at these addresses, or of all."""
        sets = list(self._sets.items())
        return [known.scan for key, known in sets if addresses is None or not addresses.isdisjoint(key)]

    def forget(self, addresses: Set[int] | None, *, watch: bool = True) -> bool:
        """Drops the nets made from weights at these addresses, or all. False if there are no such weights.

        Without `watch` the references to the weights go, too: torch.utils.swap_tensors refuses what has any.
        """
        sets = [(s, key) for key, s in list(self._sets.items()) if addresses is None or not addresses.isdisjoint(key)]
        for weight_set, key in sets:
            if watch:
                self._core.drop_weight_set(weight_set.number)
                weight_set.scan.forget()
            else:
                self._drop(weight_set.number, key)
        return bool(sets)
