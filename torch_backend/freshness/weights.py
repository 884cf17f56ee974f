"""The weights that a region's nets were made from: which belong together, and whether they are what they were.

This is torch's side of the contract in csrc/runtime/weight_set.h. What tells is one class (native/tensor_set.h).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import torch

import softneuro
from softneuro.torch_backend import _native
from softneuro.torch_backend.freshness import tensors
from softneuro.torch_backend.freshness.tensors import addresses_of

Now = tuple[int, int]  # a set's identity and epoch


class Weights:
    """Sets of weights, several where compiled code is shared between modules.

    `region` forgets what was made from a set that ends. `reads`: whether torch's tensors are read where they lie.
    """

    def __init__(self, region: softneuro._C.Region | None, *, reads: bool) -> None:
        self._region = region
        self._fields = tensors.fields_for if reads else None
        self._sets: dict[tuple[int, ...], _native.TensorSet] = {}  # by the weights' addresses
        self._last: dict[int, _native.TensorSet] = {}  # by the first weight

    def look(self, weights: Sequence[torch.Tensor]) -> tuple[_native.TensorSet, Now]:
        """The set that these tensors form, as they are now. Raises RuntimeError for tensors without memory."""
        first = id(weights[0]) if weights else 0
        known = self._last.get(first)
        if known is not None and known.are(weights) and (now := known.epoch_of()) is not None:
            return known, now
        key = tuple(addresses_of(weights))
        known = self._sets.get(key)
        if known is None or not known.are(weights):
            if known is not None:
                known.end()  # other tensors have taken over its memory, with version counters of their own
            _drop_ended(self._sets)
            _drop_ended(self._last)
            known = self._sets[key] = _native.TensorSet(weights, self._fields, tensors.counters_of, self._region)
        self._last[first] = known
        if (now := known.epoch_of()) is None:  # their memory has moved once more
            return self.look(weights)
        return known, now

    def addresses(self) -> tuple[int, ...]:
        """Of the set last seen, in the op's order; empty if they are gone."""
        return next((key for key, known in reversed(self._sets.items()) if not known.ended), ())

    def sets(self, addresses: Set[int] | None = None) -> list[_native.TensorSet]:
        """Those with weights at these addresses, or all."""
        found = list(self._sets.items())
        return [s for key, s in found if not s.ended and (addresses is None or not addresses.isdisjoint(key))]

    def changed(self, addresses: Set[int]) -> None:
        """Has what was made from weights at these addresses made anew."""
        for known in self.sets(addresses):
            known.changed()

    def end(self, addresses: Set[int] | None = None) -> bool:
        """Ends the sets with weights at these addresses, or all. False if there are none.

        The references to the weights go, too: torch.utils.swap_tensors refuses what has any.
        """
        sets = self.sets(addresses)
        for known in sets:
            known.end()
        return bool(sets)


def pieces_of(
    weights: Sequence[torch.Tensor], watched: Set[int]
) -> list[tuple[int, int, Sequence[int], Sequence[int], bool]]:
    """Address, bytes of an element, sizes, strides and whether to compare all at every call, by weight."""
    return [
        (address, weight.element_size(), weight.shape, weight.stride(), index in watched)
        for index, (weight, address) in enumerate(zip(weights, addresses_of(weights), strict=True))
    ]


def _drop_ended(sets: dict[Any, _native.TensorSet]) -> None:
    for key, known in list(sets.items()):
        if known.ended:
            sets.pop(key, None)
