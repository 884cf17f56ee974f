"""A region while the program runs: from tensors to a net, kept fresh, or to the host."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import softneuro
from softneuro.torch_backend import registry
from softneuro.torch_backend.call import judging, planning, raising
from softneuro.torch_backend.compile.borders import borders_of
from softneuro.torch_backend.compile.lowering import Lowered, Lowering
from softneuro.torch_backend.compile.orders import contiguous_in
from softneuro.torch_backend.compile.partitioner import Region
from softneuro.torch_backend.compile.reals import InFloat32, has_halves
from softneuro.torch_backend.freshness.weights import Weights, WeightSet, guards_of
from softneuro.torch_backend.options import Options

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.apart import Apart

log = logging.getLogger("softneuro.torch_backend")
Signature = tuple[int, ...]


@dataclass
class Shaped:
    """What is known of a region for one signature: threads, inputs' types, layouts and shapes, symbolic sizes."""

    plan: softneuro.Plan | None = None
    verdict: judging.Verdict | None = None
    host: str | None = None  # why the host runs it
    net_stats: dict[str, int] | None = None  # of the prepared net


class RegionRuntime:
    """Prepares nets for a region and decides between net and host.

    The op calls `resolve` when it finds no net that is ready and fresh; everything else happens in the op.
    """

    def __init__(
        self,
        region: Region,
        options: Options,
        host: Callable[..., Any] | None = None,
        split: Callable[[], Apart] | None = None,
    ) -> None:
        self.region = region
        self.options = options
        self.shaped: OrderedDict[Signature, Shaped] = OrderedDict()
        self.handle = registry.add(region.content, self)
        self.weights = Weights(self.handle)
        self._host = host or region.module
        self._split = split  # of a region with steps
        self.apart: Apart | None = None  # it without them, once its net has lost
        self._lock = threading.RLock()
        orders = [node.meta["order"] for node in region.module.graph.output_node().args[0]]
        self._orders = [None if tuple(order) == tuple(range(len(order))) else order for order in orders]
        self._names = [node.name for node in region.inputs]
        self._busy = threading.local()
        self.given_up: str | None = None  # why the host runs every call

    # What the op calls.

    def resolve(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
    ) -> list[torch.Tensor]:
        """Outputs of the region, and whatever the next call needs to be fast."""
        if self.given_up is not None:
            return self.run_host(inputs, weights, sizes)
        signature = self.signature(inputs, sizes)
        known = self.shaped.get(signature)
        if known is not None and known.host is not None:
            return self.run_otherwise(inputs, weights, sizes)
        if getattr(self._busy, "entered", False):  # missed again, by a weight that changes under us
            return self.run_host(inputs, weights, sizes)
        self._busy.entered = True
        try:
            if self.prepare(signature, inputs, weights, sizes):
                outputs = list(torch.ops.softneuro.run_region(self.handle, inputs, weights, sizes))
                self.weights.note_call()
                return outputs
        finally:
            self._busy.entered = False
        return self.run_otherwise(inputs, weights, sizes)

    def signature(self, inputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> Signature:
        """What the op looks a net up by: threads, each input's form (borders.py) and sizes, the symbolic sizes."""
        return tuple(torch.ops.softneuro.region_signature(inputs, sizes))

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

    def stand_in(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
    ) -> list[torch.Tensor]:
        """Outputs where a step of the net has raised: the host raises the same, or it is to run these shapes."""
        outputs = self.run_host(inputs, weights, sizes)
        reason = "a step of the host raised in the net, and not outside of it"
        log.warning("%s: no net of it runs for inputs %s: %s", self.handle, _shapes(inputs), reason)
        with self._lock:
            self._remember(self.signature(inputs, sizes), Shaped(host=reason))
            softneuro._C.region_clear(self.handle)
        return outputs

    def run_otherwise(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
    ) -> list[torch.Tensor]:
        """What runs in the place of a net that lost: regions between its steps if it has any, else the host."""
        if self._split is None or self.given_up is not None:
            return self.run_host(inputs, weights, sizes)
        if self.apart is None:
            with self._lock:
                self.apart = self.apart or self._split()
        with torch.no_grad():
            results = self.apart(*inputs, *sizes, *weights)
        return self.as_promised(results, inputs)

    def as_promised(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies the outputs that lie otherwise or share memory with an input or each other."""
        taken = {t.untyped_storage()._cdata for t in inputs}
        outputs = []
        for result, order in zip(results, self._orders, strict=True):
            output = result.contiguous() if order is None else contiguous_in(order, result)
            if output.untyped_storage()._cdata in taken:
                output = output.clone(memory_format=torch.preserve_format)
            taken.add(output.untyped_storage()._cdata)
            outputs.append(output)
        return outputs

    # Preparation.

    def prepare(
        self,
        signature: Signature,
        inputs: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        sizes: Sequence[int],
    ) -> bool:
        """Makes the op's net ready. False if the host is to run the region for this signature."""
        with self._lock:
            shaped = self.shaped.get(signature)
            if shaped is not None and shaped.host is not None:
                return False
            if any(size == 0 for tensor in inputs for size in tensor.shape):
                self._remember(signature, Shaped(host="it is on an empty tensor"))
                return False
            try:
                if not self.weights.bear_preparation(signature, weights):
                    self._give_up()
                    return False
                self._prepare(signature, shaped, inputs, weights, sizes)
            except softneuro._C.PlanFileError:
                raise  # the caller's to mend
            except Exception as error:
                if raising.original(error) is not None:
                    raise  # the caller's, too: nothing is known yet of calls that do not raise
                # Whatever went wrong, memory that ran out most likely: the host can still give the result.
                reason = str(error) or type(error).__name__
                log.warning("%s: the host runs it for inputs %s: %s", self.handle, _shapes(inputs), reason)
                log.debug("preparation failed", exc_info=True)
                self._remember(signature, Shaped(host=reason))
            return self.shaped[signature].host is None

    def _give_up(self) -> None:
        """Leaves every call to the host: packing weights at each of them takes longer than it saves."""
        self.given_up = "its weights change at every call"
        log.warning("%s: the host runs it from now on: %s; refresh(model) ends that", self.handle, self.given_up)
        softneuro._C.region_clear(self.handle)

    def _prepare(
        self,
        signature: Signature,
        shaped: Shaped | None,
        inputs: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        sizes: Sequence[int],
    ) -> None:
        weight_set = self.weights.set_of(weights)
        lowered = self.lower(signature, inputs, weights, sizes)
        threads = self.threads()
        shapes = tuple(size for tensor in inputs for size in tensor.shape)
        exact = InFloat32(self.region.module) if has_halves(self.region.module) else None
        allowed: float | None = self.options.max_error
        inexact: Shaped | None = None  # tried before, with too large an error
        while allowed is not None:
            if shaped is None:
                shaped = Shaped(planning.make_plan(lowered.graph, self.options, threads, allowed, shapes))
                if inexact is not None and judging.same_routines(inexact.plan, shaped.plan):
                    shaped = inexact
                    self._remember(signature, shaped)
                    break
            net = softneuro.Net(lowered.graph, shaped.plan, threads=threads)
            shaped.net_stats = net.stats
            self._remember(signature, shaped)
            self._publish(signature, lowered, weights, weight_set, net)
            if shaped.verdict is not None or not self.options.never_worse:
                break
            try:
                shaped.verdict = judging.judge(
                    net=lambda: list(torch.ops.softneuro.run_region(self.handle, inputs, weights, sizes)),
                    host=lambda: self.run_host(inputs, weights, sizes),
                    truth=exact and (lambda: exact.outputs([*inputs, *sizes, *weights])),
                    key=judging.verdict_key(self.region.content, signature, self.options, shaped.plan, allowed),
                    options=self.options,
                )
            except Exception:  # no net without a verdict
                softneuro._C.region_drop_weight_set(self.handle, weight_set.number)
                raise
            if shaped.verdict is None:
                break
            allowed = judging.tighter(shaped.verdict, allowed, self.options)
            if allowed is not None:
                log.info("%s: %s, choosing again for %.1e", self.handle, shaped.verdict.reason, allowed)
                inexact, shaped = shaped, None
        assert shaped is not None
        if shaped.verdict is not None and not shaped.verdict.wins:
            shaped.host = shaped.verdict.reason
            log.info("%s: the host runs it for inputs %s: %s", self.handle, _shapes(inputs), shaped.host)
            softneuro._C.region_drop_weight_set(self.handle, weight_set.number)

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
        lowering = Lowering(self.region.module, placed, self.region.constants, self.region.steps)
        lowered = lowering.run(inputs, borders, sizes, self._names)
        lowered.graph.optimize()
        return lowered

    def _publish(
        self,
        signature: Signature,
        lowered: Lowered,
        weights: Sequence[torch.Tensor],
        weight_set: WeightSet,
        net: Any,
    ) -> None:
        softneuro._C.region_put(
            self.handle,
            list(signature),
            guards_of(weights, lowered.watched),
            net,
            lowered.orders,
            weight_set.number,
            planning.NETS_PER_REGION,
        )

    def _remember(self, signature: Signature, shaped: Shaped) -> None:
        self.shaped[signature] = shaped
        self.shaped.move_to_end(signature)
        while len(self.shaped) > planning.SHAPES_PER_REGION:
            self.shaped.popitem(last=False)

    @property
    def parts(self) -> list[RegionRuntime]:
        """Regions that run in this one's place."""
        return self.apart.regions if self.apart is not None else []

    def forget(self, addresses: Set[int]) -> None:
        """Drops the nets made from weights at these addresses."""
        self.weights.forget(addresses)
        for part in self.parts:
            part.forget(addresses)

    def refresh(self, addresses: Set[int] | None) -> None:
        """Forgets the nets made from weights at these addresses, or all, and that the host runs every call."""
        if self.weights.forget(addresses, watch=False):
            with self._lock:
                self.given_up = None
                self.weights.start_afresh()


def _shapes(tensors: Sequence[torch.Tensor]) -> str:
    return ", ".join("x".join(map(str, t.shape)) for t in tensors)
