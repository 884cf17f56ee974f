"""Outputs of a graph that follow from weights alone: computed once for weights that stay what they are.

A mask that is not removed (`torch.nn.utils.prune`) sets its layer's weight at every call, which makes the product an
output of every graph. Each call gets tensors of its own, whose memory torch copies when one of them is written to.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

from softneuro.torch_backend import _native
from softneuro.torch_backend.compile.ops.walks import with_sources
from softneuro.torch_backend.freshness.weights import Now, Weights, pieces_of

_all: weakref.WeakSet[KeptOutputs] = weakref.WeakSet()


class _Made(NamedTuple):
    values: list[torch.Tensor]
    weights: Now
    found: int  # changes of weights that had been found


class KeptOutputs:
    """Some outputs of a graph, taken out of it."""

    def __init__(
        self, module: GraphModule, weights: Sequence[int], places: Sequence[int], count: int, *, reads: bool
    ) -> None:
        self._module = module  # from weights to the outputs
        self._weights = weights  # places among the graph's arguments
        self._places = places  # among its outputs
        self._others = [place for place in range(count) if place not in set(places)]
        self._sets = Weights(None, reads=reads)
        self._made: dict[int, _Made] = {}  # by set: of several modules that share the code
        _all.add(self)

    @classmethod
    def of(cls, module: GraphModule, constants: Set[Node], *, reads: bool) -> KeptOutputs | None:
        """Takes them out of a graph whose other outputs do not depend on weights alone; None if it has no such ones.

        `reads`: as of Weights.
        """
        output = module.graph.output_node()
        results = list(output.args[0])
        places = [place for place, node in enumerate(results) if node in constants and _is_own(node)]
        if not places or len(places) == len(results):
            return None
        placeholders = {node: place for place, node in enumerate(module.graph.find_nodes(op="placeholder"))}
        needed = with_sources([results[place] for place in places], lambda node: node.all_input_nodes)
        weights = [node for node in needed if node.op == "placeholder"]
        if not weights or any(node.op not in ("placeholder", "call_function") for node in needed):
            return None
        graph = Graph()
        copies: dict[Node, Node] = {node: graph.placeholder(node.name) for node in weights}
        for node in needed:
            if node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output([copies[results[place]] for place in places])
        output.args = ([node for place, node in enumerate(results) if place not in set(places)],)
        module.graph.eliminate_dead_code()
        return cls(GraphModule({}, graph), [placeholders[node] for node in weights], places, len(results), reads=reads)

    def take(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """New tensors for the arguments of a call."""
        weights = [arguments[place] for place in self._weights]
        try:
            known, now = self._sets.look(weights)
        except RuntimeError:  # tensors without memory, as tracers make them
            return self._compute(weights)
        made, found = self._made.get(now[0]), _native.TensorSet.found
        if made is None or (made.weights, made.found) != (now, found):
            made_of = known.learn(pieces_of(weights, set()), slices=False).made_of
            made = _Made(self._compute(weights), made_of, found)
            living = {one.identity for one in self._sets.sets()}
            self._made = {k: v for k, v in self._made.items() if k in living} | {now[0]: made}
        return [torch._lazy_clone(value) for value in made.values]

    def among(self, kept: Sequence[torch.Tensor], others: Sequence[Any]) -> list[Any]:
        """All outputs of the graph, these and what it still computes."""
        found = dict(zip(self._places, kept, strict=True)) | dict(zip(self._others, others, strict=True))
        return [found[place] for place in range(len(found))]

    def _compute(self, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        with torch.inference_mode(False), torch.no_grad():
            return list(self._module.forward(*weights))

    def forget(self) -> None:
        """Computes them anew at the next call."""
        self._sets.end()
        self._made.clear()


def forget_all() -> None:
    """Forgets what is kept of every graph."""
    for kept in list(_all):
        kept.forget()


def _is_own(node: Node) -> bool:
    """Whether an op's result has memory of its own."""
    schema = getattr(node.target, "_schema", None)
    plain = schema is not None and all(value.alias_info is None for value in schema.returns)
    return node.op == "call_function" and plain and isinstance(node.meta.get("val"), torch.Tensor)
