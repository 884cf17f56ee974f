"""Torch's tensors, and whether they are still those, alive, unwritten and where they were: asked for here alone."""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from softneuro.torch_backend import _native

log = logging.getLogger("softneuro.torch_backend")
_version = operator.attrgetter("_version")


def versions_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Counters of in-place changes, as quickly as Python can; inference tensors have none."""
    try:
        return list(map(_version, tensors))
    except RuntimeError:
        return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def addresses_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Addresses of tensors' memory, as quickly as Python can. Raises RuntimeError for tensors that have none."""
    return list(map(torch.Tensor.data_ptr, tensors))


def counters_of(tensors: Sequence[torch.Tensor]) -> tuple[list[int], list[int]]:
    """What shows changes: versions and addresses. Raises RuntimeError for tensors without memory."""
    return versions_of(tensors), addresses_of(tensors)


def kinds_of(tensors: Sequence[torch.Tensor]) -> _native.TensorWatch:
    """To ask whether tensors, alive whenever it is asked, are of the same kind to Dynamo's guards."""
    watch = _native.TensorWatch(tensors, fields_for(tensors))
    # Torch's check also looks at what the thread has switched on, which is the same for all of a kind.
    some = list({torch._C._dispatch_keys(t).raw_repr(): t for t in tensors}.values())
    if some:
        sizes, strides = [list(t.shape) for t in some], [list(t.stride()) for t in some]
        guards = torch._C._dynamo.guards.TensorGuards(*some, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        watch.ask_also(guards.check, some)
    return watch


def fields_for(tensors: Sequence[torch.Tensor]) -> tuple[int, ...] | None:
    """Where torch keeps what is compared of these tensors; None if they cannot be read."""
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided for t in tensors)
    # Longer lists of sizes are kept elsewhere, and functorch's transforms have tensors that stand for others.
    if not plain or any(t.dim() > 5 for t in tensors) or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    return fields()


@functools.cache
def fields() -> tuple[int, ...] | None:
    """Where torch keeps what changes with a tensor, as TensorWatch takes it; first, where in Python's object it is.

    None if this is not the torch that softneuro was built with, or if it does not show what is done to a tensor.
    """
    # Whatever the first call that asks is made under, the answer is for all: a thread of its own is under nothing, not
    # even within an op, whose changes to tensors torch does not count.
    try:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(_find_fields).result()
    except RuntimeError as error:  # no thread is to be had while the interpreter ends
        log.debug("torch's tensors are not read: %s", error)
        return None


def _find_fields() -> tuple[int, ...] | None:
    *built, size, count, storage, counter, autograd, requires_grad, grad_fn = torch.ops.softneuro.tensor_fields()
    if torch.__version__.split("+")[0].split(".") != [str(number) for number in built]:
        log.debug("torch's tensors are not read: built with torch %s", built)
        return None
    try:
        with torch.no_grad():
            sample = torch.zeros(1, device="cpu")
            place = _native.tensor_place(sample, sample._cdata)
            found = (place, size, count, storage, counter, autograd, requires_grad, grad_fn)
            if _tells_changes(found):
                return found
        log.debug("torch's tensors are not read: a change does not show where it is looked for")
    except Exception as error:
        log.debug("torch's tensors are not read: %s: %s", type(error).__name__, error)
    return None


def _tells_changes(where: tuple[int, ...]) -> bool:
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
            watch = _native.TensorWatch([parameter], where)
            same = watch.same_kind() and watch.unchanged()
            change(parameter)
            if not same or watch.unchanged() or watch.same_kind() != kind:
                return False
    return True
