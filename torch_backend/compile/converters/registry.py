"""The table from ATen ops to converters, and what a converter sees.

A converter adds the layers of one op to a core graph. Its check, run once per compilation on possibly symbolic shapes,
declines with a reason whatever the converter cannot translate; such an op stays with the host.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from softneuro.torch_backend.compile.ops.reals import BYTES, INTEGERS, REALS, WHOLE

if TYPE_CHECKING:
    from softneuro.torch_backend.compile.conversion.lowering import Lowering

aten = torch.ops.aten
log = logging.getLogger("softneuro.torch_backend")
Blobs = int | list[int]
Check = Callable[["Call"], str | None]
Convert = Callable[["Lowering", "Call"], Blobs]
MAX_RANK = 8


@functools.cache
def _defaults(target: Any) -> Mapping[str, Any]:
    """By argument of an op, in its order; None where it has no default."""
    arguments = target._schema.arguments
    return {a.name: a.default_value if a.has_default_value() else None for a in arguments}


class Call:
    """One ATen call with its arguments by schema name, defaults filled in.

    `constants` are the nodes whose values follow from weights alone. `values` gives, once shapes are known, the number
    or the tensor without memory that each node stands for; before that, arguments may be symbolic.
    """

    def __init__(self, node: Node, constants: Set[Node], values: dict[Node, Any] | None = None) -> None:
        self.node = node
        self._constants = constants
        self._values = values
        defaults = _defaults(node.target)
        self.args: dict[str, Any] = {**defaults, **dict(zip(defaults, node.args, strict=False)), **node.kwargs}

    def __getitem__(self, name: str) -> Any:
        """An argument; symbolic integers in it are replaced by their values where these are known."""
        value = self.args[name]
        if self._values is None:
            return value
        values = self._values
        return map_arg(value, lambda n: values[n] if isinstance(values.get(n), int | float) else n)

    def has(self, name: str) -> bool:
        """Whether the op has such an argument at all."""
        return name in self.args

    def is_constant(self, name: str) -> bool:
        """Whether a tensor argument follows from weights alone (False for a number or None)."""
        value = self.args[name]
        return isinstance(value, Node) and value in self._constants

    def is_fixed(self, node: Node) -> bool:
        """Whether a tensor follows from weights alone."""
        return node in self._constants

    def is_blob(self, name: str) -> bool:
        """Whether an argument is a tensor that flows through the graph."""
        value = self.args[name]
        return isinstance(value, Node) and value not in self._constants and isinstance(self.value(value), torch.Tensor)

    def value(self, node: Node) -> Any:
        """Meta value of a node: a tensor without memory, or a list of them."""
        if self._values is not None and node in self._values:
            return self._values[node]
        return node.meta["val"]

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor argument."""
        return tuple(self.value(self.args[name]).shape)

    def rank(self, name: str = "self") -> int:
        """Rank of a tensor argument."""
        return len(self.shape(name))

    def axis(self, name: str, rank: int) -> int:
        """An axis argument, made non-negative."""
        return int(self[name]) % max(rank, 1)

    def axes(self, name: str, rank: int) -> list[int]:
        """A list of axes, made non-negative and sorted; every axis where the argument is None or empty."""
        value = self[name]
        if value is None or (isinstance(value, Sequence) and not value):
            return list(range(rank))
        listed = [value] if isinstance(value, int) else value
        return sorted(int(axis) % max(rank, 1) for axis in listed)

    @property
    def output(self) -> Any:
        """Meta value of the result."""
        return self.value(self.node)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the (first) result."""
        result = self.output
        return tuple((result if isinstance(result, torch.Tensor) else result[0]).shape)


@dataclass(frozen=True)
class Converter:
    """How one ATen op is translated."""

    convert: Convert
    check: Check | None
    moves_only: bool  # no arithmetic: a region of nothing else is not worth a call
    many: bool  # several results, each a blob; otherwise only the first result of a tuple is provided
    takes_bytes: bool  # as reals, which is what it makes of them
    takes_masks: bool  # tensors of bool, as the host has them
    whole: bool  # takes and gives integers and booleans, as the host has them
    ops: int  # that it stands for: more than one where torch has one op for several layers


CONVERTERS: dict[Any, Converter] = {}


def find_converter(target: Any) -> Converter | None:
    """That of an op, which the table has as itself or by name."""
    return CONVERTERS.get(target) or CONVERTERS.get(str(target))


def converter(
    *targets: Any,
    check: Check | Iterable[Check] | None = None,
    moves_only: bool = False,
    many: bool = False,
    takes_bytes: bool = False,
    takes_masks: bool = False,
    whole: bool = False,
    ops: int = 1,
) -> Callable[[Convert], Convert]:
    """Registers a converter of one or more overloads: ATen's as they are, others by name."""

    def register(convert: Convert) -> Convert:
        for target in targets:
            assert target not in CONVERTERS, f"{target} has two converters"
            CONVERTERS[target] = Converter(
                convert,
                merge_checks(check),
                moves_only,
                many,
                takes_bytes,
                takes_masks,
                whole,
                0 if moves_only else ops,
            )
        return convert

    return register


def merge_checks(check: Check | Iterable[Check] | None) -> Check | None:
    """One check that asks each in turn and gives the first reason to decline."""
    if check is None or callable(check):
        return check
    checks = tuple(check)

    def merged(call: Call) -> str | None:
        return next((reason for one in checks if (reason := one(call))), None)

    return merged


def constant(*names: str) -> Check:
    """Declines unless each named argument is a weight (or None where absent)."""

    def check(call: Call) -> str | None:
        for name in names:
            if call.args[name] is not None and not call.is_constant(name):
                return f"its {name} is not a constant"
        return None

    return check


def required(*names: str) -> Check:
    """Declines where an optional argument is missing."""
    return lambda call: next((f"it has no {name}" for name in names if call.args[name] is None), None)


def ranks(name: str, *allowed: int) -> Check:
    """Declines other ranks of a tensor argument."""

    def check(call: Call) -> str | None:
        rank = call.rank(name)
        return None if rank in allowed else f"rank {rank} is not supported"

    return check


def equals(**expected: Any) -> Check:
    """Declines unless arguments have the given values."""

    def check(call: Call) -> str | None:
        for name, value in expected.items():
            if call.args[name] != value:
                return f"{name}={call.args[name]} is not supported"
        return None

    return check


def tensor_reason(value: Any, dtypes: Sequence[torch.dtype] | None = REALS) -> str | None:
    """Why a tensor cannot flow through a region, or None. Without `dtypes`, any type does."""
    if not isinstance(value, torch.Tensor):
        return "it is not on a tensor"
    if value.device.type != "cpu":
        return f"it is on {value.device.type}"
    if dtypes is not None and value.dtype not in dtypes:
        return f"its dtype is {str(value.dtype).removeprefix('torch.')}, which regions do not compute in"
    if value.layout != torch.strided:
        return f"a tensor has the layout {str(value.layout).removeprefix('torch.')}; to_dense() makes it ordinary"
    if value.dim() > MAX_RANK:
        return f"rank {value.dim()} is above {MAX_RANK}"
    if any(isinstance(size, int) and size == 0 for size in value.shape):
        return "it is on an empty tensor"
    return None


def asked(check: Callable[..., str | None], node: Node, *more: Any) -> str | None:
    """What a check says of an op, or that it cannot say anything: then the host keeps the op."""
    try:
        return check(node, *more)
    except MemoryError:
        raise
    except Exception as error:
        log.debug("%s: its check raised", node.target, exc_info=True)
        return f"its check raised {type(error).__name__}: {error}"


def _given_whole(whole: Sequence[torch.dtype], read: Sequence[Any], inner: Sequence[Any]) -> Sequence[torch.dtype]:
    """The integers and booleans that an op may give: of a real inside none that another op takes for a real, too."""
    if inner:
        return [torch.bool] if whole else []
    of_whole = any(isinstance(value, torch.Tensor) and value.dtype in WHOLE for value in read)
    return [dtype for dtype in whole if of_whole or dtype not in INTEGERS]


def decline_reason(node: Node, constants: Set[Node], inside: Set[Node] = frozenset()) -> str | None:
    """Why an op stays with the host, or None if it can be part of a region.

    `inside`: what is a real there, whatever the host has.
    """
    if node.op != "call_function":
        return f"{node.op} is not an op"
    if node.target is operator.getitem:
        source = node.args[0]
        return decline_reason(source, constants, inside) if isinstance(source, Node) else "it is not on a tensor"
    found = find_converter(node.target)
    if found is None:
        return "softneuro has no such layer"
    results = node.meta["val"]
    if isinstance(results, tuple | list):
        used = {user.args[1] for user in node.users if user.target is operator.getitem}
        wanted = [r for i, r in enumerate(results) if i in used] if found.many else results[:1]
        if not found.many and any(user.target is not operator.getitem or user.args[1] != 0 for user in node.users):
            return "more than its first result is used"
    else:
        wanted = [results]
    call = Call(node, constants)
    read = [n.meta.get("val") for n in node.all_input_nodes if n not in constants and n not in inside]
    inner = [n.meta.get("val") for n in node.all_input_nodes if n in inside]
    whole = WHOLE if found.whole else ()
    taken = (*REALS, *whole, *(BYTES if found.takes_bytes else ()), *([torch.bool] if found.takes_masks else ()))
    given = (*REALS, *_given_whole(whole, read, inner))
    for values, dtypes in ((wanted, None if node in inside else given), (read, taken), (inner, None)):
        for value in values:
            if isinstance(value, torch.SymInt | int):
                continue
            if reason := tensor_reason(value, dtypes):
                return reason
    return found.check(call) if found.check else None
