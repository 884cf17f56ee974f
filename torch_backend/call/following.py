"""Regions that follow what their model was tuned to, though torch compiles them later."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch

from softneuro.torch_backend.freshness.tensors import addresses_of


class Owner(Protocol):
    """What looks after the regions of a model."""

    def adopt(self, region: Any) -> bool:
        """Takes in a region of the model's weights."""


_owners: dict[int, weakref.ref[Owner]] = {}  # by the address of a weight


def claim(owner: Owner, addresses: Iterable[int]) -> None:
    """Regions of weights at these addresses are the owner's from here on."""
    for address in addresses:
        _owners[address] = weakref.ref(owner)


def follow(region: Any, weights: Sequence[torch.Tensor]) -> None:
    """Has a region's owner know of it, if it has one, at its first call."""
    if region.followed or not _owners:
        return
    region.followed = True
    for address in addresses_of(weights):
        owner = _owners.get(address)
        if owner is not None and (alive := owner()) is not None:
            alive.adopt(region)
            return
