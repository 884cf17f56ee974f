"""Batches of the user's data as a model's inputs."""

from __future__ import annotations

import itertools
import logging
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import softneuro

log = logging.getLogger("softneuro.providers")

_KINDS = {"float": "float32", "double": "float64"}
_TORN = (OSError, ValueError, EOFError, LookupError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error)
_REMEDY = "give an iterable of dicts, tuples or arrays, a CalibrationDataReader, an .npz file or a folder of test data"


class Feeds(dict[str, np.ndarray]):
    """What one run is given."""

    def bytes(self) -> int:
        """Of its arrays."""
        return sum(array.nbytes for array in self.values())


def batches_of(inputs: list[Any], data: Any, most: int) -> Iterator[Feeds]:
    """At most so many batches of the data, one at a time.

    An item is a dict of arrays by input's name, a tuple or list of arrays in the order of inputs, or an array, if there
    is one input. What a tuple has beyond the inputs, as a label, is left out. What has NaN or infinities is told of.

    Args:
        inputs: as of `InferenceSession.get_inputs()`.
        data: an iterable of items; what has `get_next()`; the path of an .npz file, or of a folder of test data.
        most: batches.

    Raises:
        Error: the data is none of that, or an item does not fit the model.
    """
    if most < 1:
        raise softneuro.Error(f"num_batches={most}: give at least one")
    for number, item in enumerate(itertools.islice(_items(inputs, data), most)):
        feeds = _feeds(inputs, item, f"batch {number}")
        for name, array in feeds.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                log.warning("batch %d has NaN or infinities in %s, which are left out of ranges", number, name)
        yield feeds


def _items(inputs: list[Any], data: Any) -> Iterator[Any]:
    if isinstance(data, str | os.PathLike):
        return _stored(inputs, Path(data))
    if hasattr(data, "get_next"):
        return iter(data.get_next, None)
    if isinstance(data, Mapping | np.ndarray | bytes) or not isinstance(data, Iterable):
        raise softneuro.Error(f"data is a {type(data).__name__}, not batches: {_REMEDY}; a list of one batch will do")
    return iter(data)


def _feeds(inputs: list[Any], item: Any, where: str) -> Feeds:
    if isinstance(item, Mapping):
        named = dict(item)
    elif isinstance(item, tuple | list):
        named = {entry.name: array for entry, array in zip(inputs, item, strict=False)}
    elif hasattr(item, "__array__"):
        named = {entry.name: item for entry in inputs[:1]}
    else:
        raise softneuro.Error(f"{where} is a {type(item).__name__}: {_REMEDY}")
    names = {entry.name for entry in inputs}
    unknown, missing = sorted(named.keys() - names), sorted(names - named.keys())
    if unknown or missing:
        wrong = [f"has {', '.join(unknown)}"] * bool(unknown) + [f"lacks {', '.join(missing)}"] * bool(missing)
        raise softneuro.Error(f"{where} {' and '.join(wrong)}: the model's inputs are {', '.join(sorted(names))}")
    return Feeds({entry.name: _array(entry, named[entry.name], where) for entry in inputs})


def _array(entry: Any, value: Any, where: str) -> np.ndarray:
    kind = entry.type.removeprefix("tensor(").removesuffix(")")
    array = np.asarray(value)
    wanted = _KINDS.get(kind, kind)
    fits = len(array.shape) == len(entry.shape) and all(
        size == dim for size, dim in zip(array.shape, entry.shape, strict=True) if isinstance(dim, int)
    )
    if not fits:
        raise softneuro.Error(f"{where} has {entry.name} of shape {list(array.shape)}, the model wants {entry.shape}")
    if str(array.dtype) == wanted or wanted in ("bfloat16", "string"):
        return array
    try:
        dtype = np.dtype(wanted)
    except TypeError:
        return array  # the runtime's to refuse
    alike = {array.dtype.kind, dtype.kind}
    if not (alike == {"f"} or alike <= {"i", "u"}):
        raise softneuro.Error(f"{where} has {entry.name} of {array.dtype}, the model wants {wanted}")
    return array.astype(dtype)


def _stored(inputs: list[Any], path: Path) -> Iterator[Any]:
    if path.is_dir():
        return _test_data(inputs, path)
    if not path.exists():
        raise softneuro.Error(f"there is no data at {path}")
    if path.suffix == ".npz":
        return _npz(inputs, path)
    raise softneuro.Error(f"{path} is no data: {_REMEDY}")


def _npz(inputs: list[Any], path: Path) -> Iterator[Any]:
    """One batch, or as many as its arrays have along an axis in front of those that inputs have."""
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _TORN as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise softneuro.Error(f"{path} cannot be read: {told}") from None
    ranks = {entry.name: len(entry.shape) for entry in inputs}
    many = {name for name, array in arrays.items() if array.ndim == ranks.get(name, -1) + 1}
    counts = {len(arrays[name]) for name in many}
    if len(counts) > 1:
        raise softneuro.Error(f"{path} has different numbers of batches: {', '.join(map(str, sorted(counts)))}")
    for i in range(counts.pop() if counts else 1):
        yield {name: array[i] if name in many else array for name, array in arrays.items()}


def _test_data(inputs: list[Any], folder: Path) -> Iterator[Any]:
    """Of a folder `test_data_set_*`, or of all those in a folder."""
    sets = [folder] if any(folder.glob("input_*.pb")) else sorted(folder.glob("test_data_set_*"), key=_number)
    if not sets:
        raise softneuro.Error(f"{folder} has neither folders test_data_set_* nor files input_*.pb")
    for one in sets:
        yield _test_inputs(inputs, one)


def _test_inputs(inputs: list[Any], folder: Path) -> Mapping[str, Any]:
    try:
        import onnx
    except ImportError as error:
        raise softneuro.Error("onnx is not installed: pip install 'softneuro[onnxruntime]'") from error
    names = [entry.name for entry in inputs]
    found = {}
    for place, path in enumerate(sorted(folder.glob("input_*.pb"), key=_number)):
        try:
            tensor = onnx.load_tensor(str(path))
            array = onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # protobuf's, whose package need not be known here
            raise softneuro.Error(f"{path} is no tensor: {error}") from None
        name = tensor.name if tensor.name in names else names[place] if place < len(names) else path.stem
        found[name] = array
    return found


def _number(path: Path) -> tuple[int, str]:
    digits = re.search(r"(\d+)$", path.stem)
    return (int(digits[1]) if digits else -1, path.name)
