"""A compiled graph whose regions softneuro runs, if it has any: what AOT Autograd's wrapper calls."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from softneuro.torch_backend import registry
from softneuro.torch_backend.call import raising
from softneuro.torch_backend.call.direct import DirectCall, listeners, pick
from softneuro.torch_backend.call.kept import KeptOutputs
from softneuro.torch_backend.call.runtime import RegionRuntime
from softneuro.torch_backend.compile.partitioning.partitioner import Partition
from softneuro.torch_backend.freshness.tensors import addresses_of
from softneuro.torch_backend.freshness.weights import Now, Weights


class CompiledGraph:
    """A graph with its regions: what the host calls."""

    _boxed_call = True  # takes a list of arguments, as AOT Autograd's wrappers give them

    def __init__(
        self,
        partition: Partition,
        regions: list[RegionRuntime],
        static: Sequence[int],
        direct: DirectCall | None,
        run: Any,
        *,
        inputs: int,
        kept: KeptOutputs | None,
    ) -> None:
        self.partition = partition
        self.regions = regions
        self._static = pick(static) if static else None
        self.direct = direct
        self.inputs = inputs
        self.kept = kept
        self._run = run
        self._sets = Weights(None, reads=False)
        self._seen: dict[int, Now] = {}  # by first weight: the weights at the last call
        for region in regions:
            weakref.finalize(self, registry.remove, region.handle).atexit = False

    def __call__(self, arguments: list[Any]) -> Any:
        """Runs the graph. Arguments: the AOT graph's placeholders, in order; consumed."""
        if self._static is not None:
            self._notice_changes(self._static(arguments))
        if listeners:
            for listener in listeners:
                listener(self)
        if self.kept is None:
            return self._results(arguments)
        kept = self.kept.take(arguments)
        return self.kept.among(kept, self._results(arguments))

    def _results(self, arguments: list[Any]) -> Any:
        if self.direct is not None and (results := self.direct(arguments)) is not None:
            arguments.clear()
            return results
        try:
            return self._run(arguments)
        except RuntimeError as error:
            if (original := raising.take(error)) is None:
                raise
            raise original from None

    def _notice_changes(self, weights: Sequence[torch.Tensor]) -> None:
        """For regions that compiled code calls by an op, which has only where weights are."""
        _, now = self._sets.look(weights)
        if self._seen.get(id(weights[0])) != now:
            # Anew for weights not seen before, too: they may have been changed since another object held them.
            addresses = set(addresses_of(weights))
            for region in self.regions:
                region.forget(addresses)
            self._seen[id(weights[0])] = now
