"""Batches of the user's data as a model's arguments."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

import softneuro
from softneuro.torch_backend.exported import LoadedProgram


class Batch(NamedTuple):
    """Arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> Iterator[torch.Tensor]:
        """Those among the arguments themselves."""
        return (value for value in (*self.args, *self.kwargs.values()) if isinstance(value, torch.Tensor))

    def bytes(self) -> int:
        """Of its tensors."""
        return sum(tensor.nbytes for tensor in self.tensors())


def batches_of(
    model: Any, data: Iterable[Any], most: int, transform: Callable[[Any], Any] | None = None
) -> Iterator[Batch]:
    """At most so many batches, one at a time.

    An item of the data, or what `transform` makes of it, is a tensor, a dict of arguments by name, or a tuple or list
    of arguments. What a tuple has beyond the arguments that the model takes, as a label, is left out.
    Raises Error for data that is no iterable, and for items of other types.
    """
    if isinstance(data, torch.Tensor | Mapping | str) or not isinstance(data, Iterable):
        raise softneuro.Error(
            f"data is a {type(data).__name__}, not an iterable of batches: give a list of them, or a DataLoader"
        )
    if most < 1:
        raise softneuro.Error(f"num_batches={most}: give at least one")
    taken = _positions(model)
    for number, item in enumerate(itertools.islice(data, most)):
        given = transform(item) if transform is not None else item
        if isinstance(given, torch.Tensor):
            yield Batch((given,), {})
        elif isinstance(given, Mapping):
            yield Batch((), dict(given))
        elif isinstance(given, tuple | list):
            yield Batch(tuple(given[:taken]), {})
        else:
            raise softneuro.Error(
                f"batch {number} is a {type(given).__name__}, not a tensor, tuple or dict: give a transform"
            )


def _positions(model: Any) -> int | None:
    """How many arguments the model takes by position; None for any number."""
    if isinstance(model, LoadedProgram):
        return int(model.program.call_spec.in_spec.children_specs[0].num_children)
    plain = getattr(model, "_orig_mod", model)
    try:
        parameters = inspect.signature(getattr(plain, "forward", plain)).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
