"""A region while the program runs: from tensors to a net, kept fresh, or to the host."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import softneuro
from softneuro.torch_backend import planning, registry
from softneuro.torch_backend.lowering import Lowered, Lowering
from softneuro.torch_backend.options import Options
from softneuro.torch_backend.partitioner import Region

log = logging.getLogger("softneuro.torch_backend")
Signature = tuple[int, ...]
_weight_sets = itertools.count(1)


@dataclass
class Shaped:
    """What is known of a region for one signature: threads, shapes, symbolic sizes."""

    plan: softneuro.Plan | None = None
    verdict: planning.Verdict | None = None
    host: str | None = None  # why the host runs it


@dataclass
class WeightSet:
    """One model's weights for a region; several where compiled code is shared between modules."""

    number: int
    alive: list[weakref.ref[torch.Tensor]] = field(default_factory=list)


def version_of(tensor: torch.Tensor) -> int:
    """Counter of in-place changes; inference tensors have none."""
    return 0 if tensor.is_inference() else tensor._version


def contiguous_in(order: Sequence[int], tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its memory in the given order of axes."""
    inverse = sorted(range(len(order)), key=lambda i: order[i])
    return tensor.permute(tuple(order)).contiguous().permute(inverse)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


class RegionRuntime:
    """Prepares nets for a region and decides between net and host.

    The op calls `resolve` when it finds no net that is ready and fresh; everything else happens in the op.
    """

    def __init__(self, region: Region, options: Options, host: Callable[..., Any] | None = None) -> None:
        self.region = region
        self.options = options
        self.shaped: OrderedDict[Signature, Shaped] = OrderedDict()
        self.handle = registry.add(region.content, self)
        self._host = host or region.module
        self._lock = threading.RLock()
        self._sets: dict[tuple[int, ...], WeightSet] = {}  # by the weights' addresses
        self._orders = [node.meta["order"] for node in region.module.graph.output_node().args[0]]
        self._names = [node.name for node in region.inputs]
        self._busy = threading.local()

    # What the op calls.

    def resolve(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
    ) -> list[torch.Tensor]:
        """Outputs of the region, and whatever the next call needs to be fast."""
        signature = self.signature(inputs, sizes)
        if getattr(self._busy, "entered", False):  # missed again, by a weight that changes under us
            return self.run_host(inputs, weights, sizes)
        self._busy.entered = True
        try:
            if self.prepare(signature, inputs, weights, sizes):
                return list(torch.ops.softneuro.run_region(self.handle, inputs, weights, sizes))
        finally:
            self._busy.entered = False
        return self.run_host(inputs, weights, sizes)

    def signature(self, inputs: Sequence[torch.Tensor], sizes: Sequence[int]) -> Signature:
        """Must agree with run_region in ops.cc."""
        parts: list[int] = [torch.get_num_threads()]
        for tensor in inputs:
            parts += [tensor.dim(), *tensor.shape]
        return (*parts, *sizes)

    def run_host(
        self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[Any]
    ) -> list[torch.Tensor]:
        """The host's own ops, with outputs as the op promises them: in memory order, aliasing nothing."""
        with torch.no_grad():
            results = self._host(*inputs, *sizes, *weights)
        return self.as_promised(results, inputs, weights)

    def as_promised(
        self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Copies the outputs that lie otherwise or share memory."""
        taken = {t.untyped_storage()._cdata for t in (*inputs, *weights)}
        outputs = []
        for result, order in zip(results, self._orders, strict=True):
            output = contiguous_in(order, result)
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
                self._prepare(signature, shaped, inputs, weights, sizes)
            except (softneuro.Error, MemoryError) as error:
                log.warning("%s: the host runs it for inputs %s: %s", self.handle, _shapes(inputs), error)
                self._remember(signature, Shaped(host=str(error)))
            return self.shaped[signature].host is None

    def _prepare(
        self,
        signature: Signature,
        shaped: Shaped | None,
        inputs: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        sizes: Sequence[int],
    ) -> None:
        weight_set = self._weight_set(weights)
        lowered = self.lower(inputs, weights, sizes)
        threads = self.threads()
        allowed: float | None = self.options.max_error
        near = self._nearest(signature)
        inexact: Shaped | None = None  # tried before, with too large an error
        while allowed is not None:
            if shaped is None:
                shaped = Shaped(planning.make_plan(lowered.graph, self.options, threads, allowed, near))
                if inexact is not None and planning.same_routines(inexact.plan, shaped.plan):
                    shaped = inexact
                    self._remember(signature, shaped)
                    break
            net = softneuro.Net(lowered.graph, shaped.plan, threads=threads)
            self._remember(signature, shaped)
            self._publish(signature, lowered, weights, weight_set, net)
            if shaped.verdict is not None or not self.options.never_worse:
                break
            shaped.verdict = planning.judge(
                net=lambda: list(torch.ops.softneuro.run_region(self.handle, inputs, weights, sizes)),
                host=lambda: self.run_host(inputs, weights, sizes),
                key=planning.verdict_key(self.region.content, signature, self.options, allowed),
                options=self.options,
            )
            if shaped.verdict is None:
                break
            allowed, near = planning.tighter(shaped.verdict, allowed, self.options), None
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

    def lower(self, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]) -> Lowered:
        """An optimised core graph for these shapes and weights."""
        placed = {node: (i, weights[i]) for i, node in enumerate(self.region.weight_nodes)}
        lowered = Lowering(self.region.module, placed, self.region.constants).run(inputs, sizes, self._names)
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
        guards = []
        for index, weight in enumerate(weights):
            # Elements that surely lie one after the other from data_ptr on, whatever their order.
            count = weight.numel() if is_dense(weight) else min(weight.numel(), 1)
            size = weight.element_size() * count
            guards.append((weight.data_ptr(), size, index in lowered.watched))
        orders = [[] if tuple(o) == tuple(range(len(o))) else list(o) for o in lowered.orders]
        softneuro._C.region_put(
            self.handle, list(signature), guards, net, orders, weight_set.number, planning.NETS_PER_REGION
        )

    def _remember(self, signature: Signature, shaped: Shaped) -> None:
        self.shaped[signature] = shaped
        self.shaped.move_to_end(signature)
        while len(self.shaped) > planning.SHAPES_PER_REGION:
            self.shaped.popitem(last=False)

    def _nearest(self, signature: Signature) -> Any:
        """Plan of the prepared signature that differs least, for the same threads; None if there is none."""
        candidates = [(s, d.plan) for s, d in self.shaped.items() if d.plan is not None and s[0] == signature[0]]
        if not candidates:
            return None

        def distance(other: Signature) -> float:
            return sum(abs(a - b) / max(a, b, 1) for a, b in zip(other, signature, strict=True))

        return min(candidates, key=lambda item: distance(item[0]))[1]

    # Freshness.

    def _weight_set(self, weights: Sequence[torch.Tensor]) -> WeightSet:
        """The set that these tensors form, with its guard on their lives."""
        key = tuple(w.data_ptr() for w in weights)
        known = self._sets.get(key)
        if known is not None and all(ref() is w for ref, w in zip(known.alive, weights, strict=True)):
            return known
        if known is not None:
            self._drop(known.number, key)
        made = WeightSet(next(_weight_sets))
        runtime = weakref.ref(self)

        def dead(_: Any, number: int = made.number) -> None:
            if (owner := runtime()) is not None:
                owner._drop(number, key)

        made.alive = [weakref.ref(w, dead) for w in weights]
        self._sets[key] = made
        return made

    def _drop(self, number: int, key: tuple[int, ...]) -> None:
        if (known := self._sets.get(key)) is not None and known.number == number:
            del self._sets[key]
        softneuro._C.region_drop_weight_set(self.handle, number)

    def forget_weights(self) -> None:
        """Makes the next call prepare its net anew, plan and verdict unchanged."""
        softneuro._C.region_drop(self.handle)


def _shapes(tensors: Sequence[torch.Tensor]) -> str:
    return ", ".join("x".join(map(str, t.shape)) for t in tensors)
