"""A region while the program runs: what torch's door supplies to the core's runtime (csrc/runtime), call by call."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

import softneuro
from softneuro.torch_backend import registry
from softneuro.torch_backend.call import following, raising
from softneuro.torch_backend.call.unready import Call
from softneuro.torch_backend.compile.conversion.lowering import Lowered, Lowering
from softneuro.torch_backend.compile.ops.borders import borders_of
from softneuro.torch_backend.compile.ops.known_shapes import KnownShapes
from softneuro.torch_backend.compile.ops.orders import contiguous_in
from softneuro.torch_backend.compile.ops.reals import InFloat32, has_halves
from softneuro.torch_backend.compile.ops.updates import updated_inputs
from softneuro.torch_backend.compile.partitioning.partitioner import Region
from softneuro.torch_backend.freshness import shortcuts
from softneuro.torch_backend.freshness.weights import Weights
from softneuro.torch_backend.options import Options

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.host.apart import Apart

log = logging.getLogger("softneuro.torch_backend")
Signature = tuple[int, ...]


class Verdict(NamedTuple):
    """Outcome of the comparison of a net with the host."""

    wins: bool
    reason: str
    net_s: float
    host_s: float
    error: float  # the worst of the outputs, on a scale on which max_error is allowed


@dataclass
class Shaped:
    """What is known of a region for one signature: threads, inputs' types, layouts and shapes, symbolic sizes."""

    plan: softneuro.Plan | None = None
    verdict: Verdict | None = None
    host: str | None = None  # why the host runs it
    net_stats: dict[str, int] | None = None  # of the prepared net


class RegionRuntime:
    """Runs a region's calls that find no net ready, by a net or by the host."""

    def __init__(
        self,
        region: Region,
        options: Options,
        host: Callable[..., Any] | None = None,
        split: Callable[[], Apart] | None = None,
    ) -> None:
        self.region = region
        self.options = options
        how = f"torch {torch.__version__} {options.host}"
        self.handle = registry.add(region.content, self)
        self.core = softneuro._C.Region(self.handle, region.content, how, options.core())
        softneuro._C.region_add(self.handle, self.core)
        self.weights = Weights(self.core, reads=shortcuts.allowed(options))
        self._host = host or region.module
        self._split = split
        self.apart: Apart | None = None  # it without them, once its net has lost
        self._exact = InFloat32(region.module) if has_halves(region.module) else None
        self._lock = threading.Lock()
        self.followed = self._told_of_strides = False
        orders = [node.meta["order"] for node in region.module.graph.output_node().args[0]]
        self._orders = [None if tuple(order) == tuple(range(len(order))) else order for order in orders]
        self.updates = updated_inputs(region.module.graph)
        #: places of inputs that the region writes to; such an output is that very tensor
        self.written = {place for place in self.updates if place is not None}
        self._names = [node.name for node in region.inputs]
        dims = [size for node in region.inputs for size in node.meta["val"].shape]
        self.open_shapes = bool(region.sizes) or not all(isinstance(size, int) for size in dims)

    def resolve(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
    ) -> list[torch.Tensor]:
        """Outputs of the region, and whatever the next call needs to be fast."""
        following.follow(self, weights)
        if not self._takes(inputs):
            return self.run_otherwise(inputs, weights, sizes)
        call = Call(self, inputs, weights, sizes)
        try:
            by_net = self.core.run(call.signature, call.now, call, self.threads())
            call.settle(by_net)
        finally:
            call.close()
        return call.nets if by_net else call.hosts

    def stand_in(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
    ) -> list[torch.Tensor]:
        """Outputs where a step of the net has raised: the host raises the same, or it is to run these shapes."""
        call = Call(self, inputs, weights, sizes)
        self.core.run_after_error(call.signature, call, self.threads())
        return call.hosts

    def run_otherwise(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
    ) -> list[torch.Tensor]:
        """What runs in the place of a net that lost: regions between its steps if it has any, else the host."""
        if self._split is None or not self._splits:
            return self.run_host(inputs, weights, sizes)
        if self.apart is None:
            with self._lock:
                self.apart = self.apart or self._split()
        with torch.no_grad():
            results = self.apart(*inputs, *sizes, *weights)
        return self.as_promised(results, inputs)

    def run_host(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
    ) -> list[torch.Tensor]:
        """The host's own ops, with outputs as the op promises them: in memory order, aliasing nothing."""
        try:
            with torch.no_grad():
                results = self._host(*inputs, *sizes, *weights)
        except Exception as error:
            raising.keep(error)
            raise
        return self.as_promised(results, inputs)

    def run_as_the_host(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
    ) -> Sequence[torch.Tensor]:
        """What runs in the place of a net that lost, for a graph of the host's own ops, which take what these give."""
        if self._splits:
            return self.run_otherwise(inputs, weights, sizes)
        if not torch.is_grad_enabled():
            return self._host(*inputs, *sizes, *weights)
        with torch.no_grad():
            return self._host(*inputs, *sizes, *weights)

    def made(self, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs but for those that are inputs, as an op of torch's is to give them."""
        if not self.written:
            return outputs
        return [output for output, updated in zip(outputs, self.updates, strict=True) if updated is None]

    def outputs(self, made: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """All outputs, given those that an op has made. It may have given one more."""
        new = iter(made)
        return [next(new) if updated is None else inputs[updated] for updated in self.updates]

    def as_promised(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies the outputs that lie otherwise or share memory with an input or each other; but for what is one."""
        taken = {t.untyped_storage()._cdata for t in inputs}
        outputs = []
        for result, order, updated in zip(results, self._orders, self.updates, strict=True):
            if updated is not None:
                outputs.append(inputs[updated])
                continue
            output = result.contiguous() if order is None else contiguous_in(order, result)
            if output.untyped_storage()._cdata in taken:
                output = output.clone(memory_format=torch.preserve_format)
            taken.add(output.untyped_storage()._cdata)
            outputs.append(output)
        return outputs

    def _takes(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether a net could write to all inputs that it is to write to: it would be given copies of others."""
        apart = [place for place in self.written if not inputs[place].is_contiguous()]
        if apart and not self._told_of_strides:
            self._told_of_strides = True
            log.info("region %s: the host runs calls whose input %d is not contiguous, as it is written to",
                     self.handle, apart[0])  # fmt: skip
        return not apart

    @property
    def _splits(self) -> bool:
        """Whether anything cuts the region, as known when it was made or since."""
        return self._split is not None and bool(self.region.steps or self.region.declined)

    # What a call is made of.

    def signature(self, inputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> Signature:
        """What the op looks a net up by: threads, each input's form (borders.py) and sizes, the symbolic sizes."""
        return tuple(torch.ops.softneuro.region_signature(inputs, sizes))

    def threads(self) -> int:
        """Threads of a net: the option's, but never more than torch's pool has."""
        return min(self.options.threads or torch.get_num_threads(), torch.get_num_threads())

    def lower(
        self,
        signature: Signature,
        inputs: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        sizes: Sequence[int],
    ) -> Lowered:
        """An optimised core graph for these inputs and weights."""
        placed = {node: (i, weights[i]) for i, node in enumerate(self.region.weight_nodes)}
        borders = borders_of(signature, len(inputs))
        region = self.region
        lowering = Lowering(region.module, placed, region.constants, region.steps)
        lowered = lowering.run(inputs, borders, sizes, self._names, self._shapes)
        lowered.graph.optimize()
        return lowered

    @functools.cached_property
    def _shapes(self) -> KnownShapes | None:
        try:
            return KnownShapes(self.region.module.graph, self.region.weight_nodes)
        except ValueError as error:
            log.debug("region %s: its ops tell its shapes: %s", self.handle, error)
            return None

    def truths(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """What is right where the host itself is inexact; empty where it is right."""
        return self._exact.outputs(arguments) if self._exact is not None else []

    @property
    def shaped(self) -> dict[Signature, Shaped]:
        """What is known by signature, the last used last."""
        return {signature: _shaped(state) for signature, state in self.core.shapes()}

    @property
    def given_up(self) -> str | None:
        """Why the host runs calls whatever their shapes, for now."""
        return self.core.held_up or None

    @property
    def parts(self) -> list[RegionRuntime]:
        """Regions that run in this one's place."""
        return self.apart.regions if self.apart is not None else []

    def forget(self, addresses: Set[int]) -> None:
        """Has nets made anew from weights at these addresses."""
        self.weights.changed(addresses)
        for part in self.parts:
            part.forget(addresses)

    def refresh(self, addresses: Set[int] | None) -> None:
        """Forgets the nets made from weights at these addresses, or all, and that the host runs every call."""
        if self.weights.end(addresses):
            self.core.start_afresh()


def _shaped(state: dict[str, Any]) -> Shaped:
    verdict = state.pop("verdict")
    return Shaped(verdict=Verdict(*verdict) if verdict is not None else None, **state)
