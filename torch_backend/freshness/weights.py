"""The weights that a region's nets were made from: which belong together, and whether they are what they were."""

from __future__ import annotations

import functools
import itertools
import logging
import operator
import weakref
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch

import softneuro

log = logging.getLogger("softneuro.torch_backend")
_numbers = itertools.count(1)
_TensorBase = torch._C.TensorBase


@dataclass
class WeightSet:
    """One model's weights for a region; several where compiled code is shared between modules."""

    number: int  # by which the op knows it
    stamps: softneuro._C.TensorStamps  # cleared when one of them dies
    # Of the tensors, not of their memory: a new parameter may take that over, with a version counter of its own.
    alive: list[weakref.ref[torch.Tensor]] = field(default_factory=list)


def version_of(tensor: torch.Tensor) -> int:
    """Counter of in-place changes; inference tensors have none."""
    return 0 if tensor.is_inference() else tensor._version


_version = operator.attrgetter("_version")


def versions_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """The counters of many tensors, as quickly as Python can."""
    try:
        return list(map(_version, tensors))
    except RuntimeError:  # inference tensors among them
        return list(map(version_of, tensors))


def addresses_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Of many tensors' memory, as quickly as Python can. Raises RuntimeError for tensors that have none."""
    return list(map(torch.Tensor.data_ptr, tensors))


def stamps_of(tensors: Sequence[torch.Tensor]) -> softneuro._C.TensorStamps:
    """To ask whether tensors have been written to or lie elsewhere; clear it before one of them dies."""
    version, address = _TensorBase.__dict__["_version"], _TensorBase.__dict__["data_ptr"]
    fields = _fields_for(tensors)
    own = [t._cdata for t in tensors] if fields is not None else ()
    return softneuro._C.TensorStamps(tensors, version, address, fields, own)


def memory_of(tensors: Sequence[torch.Tensor]) -> softneuro._C.TensorMemory | None:
    """To ask whether tensors are of the same kind. None where it is not known how torch keeps them."""
    fields = _fields_for(tensors)
    return softneuro._C.TensorMemory(tensors, [t._cdata for t in tensors], fields) if fields is not None else None


def _fields_for(tensors: Sequence[torch.Tensor]) -> tuple[int, ...] | None:
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided for t in tensors)
    # Longer lists of sizes are kept elsewhere; functorch's transforms do not let one change tensors to find out.
    if not plain or any(t.dim() > 5 for t in tensors) or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    return _tensor_fields()


@functools.cache
def _tensor_fields() -> tuple[int, ...] | None:
    """Where torch keeps what changes with a tensor, as TensorMemory takes it.

    None if this is not the torch that softneuro was built with, or if it does not show what is done to a tensor.
    """
    # Whatever the first call that asks is made under, the answer is for all: a thread of its own is under nothing, not
    # even within an op, whose changes to tensors torch does not count.
    try:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(_find_tensor_fields).result()
    except RuntimeError as error:  # no thread is to be had while the interpreter ends
        log.debug("every look at a tensor asks torch: %s", error)
        return None


def _find_tensor_fields() -> tuple[int, ...] | None:
    *built, size, count, storage, counter, autograd, requires_grad, grad_fn = torch.ops.softneuro.tensor_fields()
    if torch.__version__.split("+")[0].split(".") != [str(number) for number in built]:
        log.debug("built with torch %s: every look at a tensor asks torch %s", built, torch.__version__)
        return None
    fields = (size, count, storage, counter, autograd, requires_grad, grad_fn)
    try:
        with torch.no_grad():
            if _tells_changes(fields):
                return fields
        log.debug("every look at a tensor asks torch: it does not show a change where that is looked for")
    except Exception as error:
        log.debug("every look at a tensor asks torch: %s: %s", type(error).__name__, error)
    return None


@functools.cache
def known_run() -> int:
    """Address of what runs nets on torch's tensors without its dispatcher; 0 if this is not the torch of the build."""
    return int(torch.ops.softneuro.known_run()) if _tensor_fields() is not None else 0


def _tells_changes(fields: tuple[int, ...]) -> bool:
    zeros = functools.partial(torch.zeros, dtype=torch.float32, device="cpu")
    other = zeros(4)
    for parameter in (torch.nn.Parameter(zeros(2, 3)), zeros(2, 3)):
        for change, kind in (
            (lambda p: p.add_(1), True),
            (lambda p: p.requires_grad_(not p.requires_grad), False),
            (lambda p: p.requires_grad_(not p.requires_grad), False),
            (lambda p: p.untyped_storage().resize_(4096), True),
            (lambda p: setattr(p, "data", p.data.t()), False),
            (lambda p: setattr(p, "data", other), False),
            (lambda p: setattr(p, "data", other.double()), False),
        ):
            memory = softneuro._C.TensorMemory([parameter], [parameter._cdata], fields)
            same = memory.same_kind() and memory.untouched()
            change(parameter)
            if not same or memory.untouched() or memory.same_kind() != kind:
                return False
    return True


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlap."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def guards_of(weights: Sequence[torch.Tensor], watched: Set[int]) -> list[tuple[int, int, bool]]:
    """Address, bytes and whether to compare them all, as the core takes them."""
    guards = []
    for index, weight in enumerate(weights):
        # Elements that surely lie one after the other from data_ptr on, whatever their order.
        count = weight.numel() if is_dense(weight) else min(weight.numel(), 1)
        guards.append((weight.data_ptr(), weight.element_size() * count, index in watched))
    return guards


class Weights:
    """The sets of weights of one region."""

    def __init__(self, core: softneuro._C.Region) -> None:
        self._core = core
        self._sets: dict[tuple[int, ...], WeightSet] = {}  # by the weights' addresses

    def set_of(self, weights: Sequence[torch.Tensor]) -> WeightSet:
        """The set that these tensors form, with its guard on their lives."""
        key = tuple(w.data_ptr() for w in weights)
        known = self._sets.get(key)
        if known is not None and all(ref() is w for ref, w in zip(known.alive, weights, strict=True)):
            return known
        if known is not None:
            self._drop(known.number, key)
        made = WeightSet(next(_numbers), stamps_of(weights))
        made.alive = [weakref.ref(w, self._on_death(made.number, key)) for w in weights]
        self._sets[key] = made
        return made

    def known(
        self, weights: Sequence[torch.Tensor], versions: Sequence[int], addresses: Sequence[int]
    ) -> WeightSet | None:
        """The set that these tensors form, which they did at these versions; None if no net was made from it."""
        known = self._sets.get(tuple(w.data_ptr() for w in weights))
        if known is None or any(ref() is not w for ref, w in zip(known.alive, weights, strict=True)):
            return None
        known.stamps.expect(versions, addresses)
        return known

    def _on_death(self, number: int, key: tuple[int, ...]) -> Callable[[Any], None]:
        weak = weakref.ref(self)

        def dead(_: Any) -> None:
            if (owner := weak()) is not None:
                owner._drop(number, key)

        return dead

    def _drop(self, number: int, key: tuple[int, ...]) -> None:
        if (known := self._sets.get(key)) is not None and known.number == number:
            del self._sets[key]
            known.stamps.clear()
        self._core.drop_weight_set(number)

    def addresses(self) -> tuple[int, ...]:
        """Of the set last seen, in the op's order; empty if they are gone."""
        return next(reversed(self._sets), ())

    def forget(self, addresses: Set[int] | None, *, watch: bool = True) -> bool:
        """Drops the nets made from weights at these addresses, or all. False if there are no such weights.

        Without `watch` the references to the weights go, too: torch.utils.swap_tensors refuses what has any.
        """
        sets = [(s, key) for key, s in list(self._sets.items()) if addresses is None or not addresses.isdisjoint(key)]
        for weight_set, key in sets:
            if watch:
                self._core.drop_weight_set(weight_set.number)
            else:
                self._drop(weight_set.number, key)
        return bool(sets)
