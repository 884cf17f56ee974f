"""A graph that is one region and nothing else, called without its FX code.

That code hands every weight to the op as a tensor. For a small network of hundreds of weights this takes longer than
anything else that a call does around its net; here no more is passed than which set they are.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node

import softneuro
from softneuro.torch_backend import _native, registry
from softneuro.torch_backend.freshness import tensors
from softneuro.torch_backend.freshness.weights import Now, Weights

if TYPE_CHECKING:
    from softneuro.torch_backend.call.compiled import CompiledGraph
    from softneuro.torch_backend.call.runtime import RegionRuntime

log = logging.getLogger("softneuro.torch_backend")
# Called with every compiled graph that runs, while `tune` or `explain` listens.
listeners: list[Callable[[CompiledGraph], None]] = []


def pick(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that takes the items at these places, as quickly as Python can."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda items: tuple(items[i] for i in places)


def run_known(
    region: RegionRuntime, inputs: Sequence[torch.Tensor], now: Now, sizes: Sequence[int]
) -> Sequence[torch.Tensor]:
    """The region's outputs; none if no net is ready."""
    ops = torch.ops.softneuro
    if not region.written:
        found: Sequence[torch.Tensor] = ops.run_known.default(region.handle, inputs, *now, sizes)
        return found
    written = [inputs[place] for place in region.written]
    made = ops.run_known_updating.default(region.handle, written, inputs, *now, sizes)
    return region.outputs(made, inputs) if made else made


def run_op(
    region: RegionRuntime, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
) -> Sequence[torch.Tensor]:
    """The region's outputs, by an op that modes see."""
    ops = torch.ops.softneuro
    if not region.written:
        found: Sequence[torch.Tensor] = ops.run_region.default(region.handle, inputs, weights, sizes)
        return found
    written = [inputs[place] for place in region.written]
    return region.outputs(ops.run_region_updating.default(region.handle, written, inputs, weights, sizes), inputs)


def call_region(
    handle: str, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], sizes: Sequence[int]
) -> Sequence[torch.Tensor]:
    """What a graph that Python runs calls for a region: a net if one is ready, the host where that has won."""
    region = registry.find(handle)
    try:
        _, now = region.weights.look(weights)
    except RuntimeError:  # tensors without memory, as tracers make them
        return run_op(region, inputs, weights, sizes)
    if results := run_known(region, inputs, now, sizes):
        return results
    if softneuro._C.left_to_host():
        return region.run_as_the_host(inputs, weights, sizes)
    # Modes, and tensors of other kinds, are to see an op; others are spared two.
    if torch._C._len_torch_dispatch_stack() == 0 and all(type(tensor) is torch.Tensor for tensor in inputs):
        return region.resolve(inputs, weights, sizes)
    return run_op(region, inputs, weights, sizes)


class DirectCall:
    """Takes the graph's arguments and gives its outputs, if a net is ready."""

    def __init__(
        self, handle: str, places: Sequence[Sequence[int]], outputs: Sequence[int], *, by_python: bool
    ) -> None:
        self.handle = handle
        self.by_python = by_python  # the graph's code: the host's own results will do
        self.places = places
        self._inputs, weights, self._sizes = places
        self._weights = pick(weights)
        self.outputs = outputs

    @classmethod
    def of(cls, module: GraphModule) -> DirectCall | None:
        """None if there is more in the graph than one region whose arguments and results are the graph's own."""
        graph, ops = module.graph, torch.ops.softneuro
        updating = (ops.run_region_updating.default,)
        placeholders = {node: i for i, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
        calls = [n for n in graph.nodes if n.op not in ("placeholder", "output") and n.target is not operator.getitem]
        if len(calls) != 1 or calls[0].target not in (call_region, ops.run_region.default, *updating):
            return None
        handle, *groups = calls[0].args
        written = groups.pop(0) if calls[0].target in updating else []
        results = graph.output_node().args[0]
        if not groups[0] or any(not isinstance(n, Node) or n not in placeholders for group in groups for n in group):
            return None
        if not isinstance(results, (list, tuple)):
            return None
        updates = registry.find(handle).updates
        made = [place for place, updated in enumerate(updates) if updated is None or not written]
        outputs = []
        for n in results:
            if isinstance(n, Node) and n.target is operator.getitem and n.args[0] is calls[0]:
                outputs.append(made[n.args[1]])
            elif n in written:
                outputs.append(updates.index(groups[0].index(n)))
            else:
                return None
        return cls(
            handle,
            [[placeholders[n] for n in group] for group in groups],
            outputs,
            by_python=calls[0].target is call_region,
        )

    def __call__(self, arguments: Sequence[Any]) -> list[torch.Tensor] | None:
        """The graph's outputs; None if the region has no net for these arguments yet."""
        region, weights = registry.find(self.handle), self._weights(arguments)
        try:
            _, now = region.weights.look(weights)
        except RuntimeError:  # tensors without memory, as tracers make them
            return None
        inputs, sizes = [arguments[i] for i in self._inputs], [arguments[i] for i in self._sizes]
        results = run_known(region, inputs, now, sizes)
        if not results and self.by_python and softneuro._C.left_to_host():
            results = region.run_as_the_host(inputs, weights, sizes)
        return [results[i] for i in self.outputs] if results else None


def known_call(
    direct: DirectCall,
    otherwise: Callable[..., Any],
    weights: _native.KnownWeights,
    *,
    arguments: int,
    root: int | None,
    inputs: Sequence[int],
    sizes: Sequence[int] = (),
    without_net: Callable[..., Any] | None = None,
) -> Callable[..., Any] | None:
    """A function that runs the net by itself while `weights` are known, else `otherwise`; None if torch is another.

    `without_net`, where there is one, is called for known weights that no net is ready for. left_to_host() says then
    whether the host is to run the call.

    `root`, `inputs` and `sizes` are places among its `arguments`; root None if the weights are always the same. Torch's
    dispatcher has nothing to add there: that tensors are plain ones, and nothing is switched on that would have
    a part in the op, is what the caller's guards have looked at.
    """
    fields, host = tensors.fields(), torch.ops.softneuro.known_run()
    if fields is None or not host:
        return None
    try:
        return _native.known_call(
            region=registry.find(direct.handle).core,
            host=host,
            without_net=without_net,
            otherwise=otherwise,
            listeners=listeners,
            weights=weights,
            arguments=arguments,
            root=-1 if root is None else root,
            inputs=inputs,
            sizes=sizes,
            outputs=direct.outputs,
            tensor=torch.Tensor,
            place=fields[0],
        )
    except ValueError as error:
        log.debug("a region is called by torch's dispatcher: %s", error)
        return None


class FixedCall:
    """A graph whose weights are the same tensors at every call, called as a known call while they are unchanged."""

    def __init__(self, sets: Weights, weights: Sequence[torch.Tensor]) -> None:
        self._sets, self._weights = sets, weights
        self._known = _native.KnownWeights()
        self._run: Callable[..., Any] = _nothing

    @classmethod
    def of(cls, direct: DirectCall, sets: Weights, weights: Sequence[torch.Tensor], count: int) -> FixedCall | None:
        """For a graph of these weights and then `count` inputs; None if not every input is the region's.

        `sets`: what the region knows of its weights.
        """
        inputs, chosen, sizes = direct.places
        places = [i - len(weights) for i in inputs]
        if sizes or set(places) != set(range(count)):
            return None
        made = cls(sets, [weights[i] for i in chosen])
        run = known_call(direct, _nothing, made._known, arguments=count, root=None, inputs=places)
        if run is None:
            return None
        made._run = run
        return made

    def __call__(self, leaves: Sequence[Any], slow: Callable[[Sequence[Any]], Sequence[Any]]) -> Sequence[Any]:
        """The graph's outputs, by `slow` where no net is ready or a weight has changed."""
        # Modes are to see an op, and what is negative in name alone the dispatcher makes so.
        if torch._C._len_torch_dispatch_stack() == 0 and not any(map(torch.Tensor.is_neg, leaves)):
            fast: Sequence[Any] | None = self._run(*leaves)
            if fast is not None:
                return fast
        self._known.set(None, self._sets.look(self._weights)[0], None)
        return slow(leaves)


def _nothing(*_: Any) -> None:
    return None
