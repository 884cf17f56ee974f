"""What every tensor of a region is once the sizes of its inputs are known, without its ops being run for that.

Tracing has left an expression in the inputs' symbols at every size. All of a region's are made one function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP
from torch.utils._sympy.printers import PythonPrinter

log = logging.getLogger("softneuro.torch_backend")
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
# Makes a node's value of the numbers that the region's expressions have come to.
_Maker = Callable[[Sequence[Any]], Any]


class KnownShapes:
    """Numbers, and tensors without memory, for the nodes of one graph.

    Raises ValueError if tracing has not left all of it: a symbol that no input shows by itself, or a weight whose size
    is open.
    """

    def __init__(self, graph: Graph, weights: Sequence[Node]) -> None:
        self._expressions: dict[str, int] = {}  # as Python code; and where its number will be
        self._fixed: dict[Node, Any] = {}
        self._made: dict[Node, _Maker] = {}
        own = set(weights)
        placeholders = [node for node in graph.find_nodes(op="placeholder") if node not in own]
        self._inputs = [node for node in placeholders if isinstance(node.meta.get("val"), torch.Tensor)]
        self._sizes = [node for node in placeholders if not isinstance(node.meta.get("val"), torch.Tensor)]
        # By symbol: which input's size it is, on which axis; an axis of -1 for a number of its own.
        self._symbols: dict[Any, tuple[int, int]] = {}
        for index, node in enumerate(self._inputs):
            for axis, size in enumerate(node.meta["val"].shape):
                self._add_symbol(size, (index, axis))
        for index, node in enumerate(self._sizes):
            self._add_symbol(node.meta["val"], (index, -1))
        for node in graph.nodes:
            if node.op != "output":
                self._add(node, node.meta.get("val"))
        if open_weight := next((node for node in weights if node in self._made), None):
            raise ValueError(f"the size of {open_weight}, a weight, is open")
        self._weights = [_facts(self._fixed[node]) for node in weights]
        names, items = ", ".join(map(str, self._symbols)), "".join(f"{text}, " for text in self._expressions)
        self._numbers: Callable[..., Sequence[Any]] = eval(f"lambda {names}: ({items})", dict(SYMPY_INTERP))

    def values(
        self, inputs: Sequence[torch.Tensor], sizes: Sequence[int], weights: Sequence[torch.Tensor]
    ) -> dict[Node, Any] | None:
        """What each node stands for; None where these tensors are not as those that were traced."""
        found = [sizes[i] if axis < 0 else inputs[i].shape[axis] for i, axis in self._symbols.values()]
        try:
            numbers = self._numbers(*found)
            values = {**self._fixed, **{node: make(numbers) for node, make in self._made.items()}}
        except (ArithmeticError, RuntimeError) as error:  # of sizes that the ops do not take
            log.debug("no shapes for %s: %s", found, error)
            return None
        pairs = zip(
            (*self._weights, *(_facts(values[node]) for node in self._inputs)), (*weights, *inputs), strict=True
        )
        if all(_is_like(given, *facts) for facts, given in pairs) and all(
            values[node] == size for node, size in zip(self._sizes, sizes, strict=True)
        ):
            return values
        return None

    def _add_symbol(self, size: Any, place: tuple[int, int]) -> None:
        if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
            self._symbols.setdefault(size.node.expr, place)

    def _add(self, node: Node, value: Any) -> None:
        if value is None:
            raise ValueError(f"{node} has been given no shape")
        make = self._maker(value)
        if make is None:
            self._fixed[node] = value
        else:
            self._made[node] = make

    def _maker(self, value: Any) -> _Maker | None:
        """None for what is the same whatever the sizes."""
        if isinstance(value, _SYMBOLIC):
            return self._number(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if not isinstance(value, tuple | list):
            return None
        makers = [self._maker(item) for item in value]
        if not any(makers):
            return None
        return lambda n: [item if make is None else make(n) for item, make in zip(value, makers, strict=True)]

    def _number(self, value: Any) -> _Maker:
        place = self._place(value)
        return lambda n: n[place]

    def _tensor(self, value: torch.Tensor) -> _Maker | None:
        shape, strides = tuple(value.shape), value.stride()
        if all(type(number) is int for number in (*shape, *strides)):
            return None
        places, rank, dtype = [self._place(number) for number in (*shape, *strides)], len(shape), value.dtype
        device = torch.device("meta")

        def make(n: Sequence[Any]) -> torch.Tensor:
            known = [n[place] for place in places]
            return torch.empty_strided(known[:rank], known[rank:], dtype=dtype, device=device)

        return make

    def _place(self, number: Any) -> int:
        """Where a number will be among those that all expressions come to."""
        text = str(number)
        if isinstance(number, _SYMBOLIC):
            expression = number.node.expr
            if not expression.free_symbols <= self._symbols.keys():
                raise ValueError(f"no input shows all symbols of {expression}")
            text = PythonPrinter().doprint(expression)
        return self._expressions.setdefault(text, len(self._expressions))


def _facts(tensor: torch.Tensor) -> tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()


def _is_like(given: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a tensor is of this type and shape, and its elements are where these strides lead."""
    if given.dtype != dtype or given.shape != shape:
        return False
    own = given.stride()
    return own == strides or all(s == 1 or a == b for s, a, b in zip(shape, own, strides, strict=True))
