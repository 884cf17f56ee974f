"""Options as Python objects, to the texts that the core reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from softneuro import _C

# What each type of `option_table()` may be given as; text always does. A bool is no number, though Python's is an int.
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (Integral,),
    "float": (Real,),
    "bool": (Integral,),
    "choice": (),
    "path": (os.PathLike,),
    "list": (list, tuple),
    "memory": (Real,),
}


def option_texts(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Texts by name, for `_C.parse_options`, which checks names and ranges.

    Raises:
        Error: `options` is no mapping of names, or a value has a type that its option cannot have.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise _C.Error(f"options are given by name, as a dict, not as {type(options).__name__}")
    kinds = {info["name"]: info["type"] for info in _C.option_table()}
    return {_checked_name(name): _text(name, value, kinds.get(name)) for name, value in options.items()}


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise _C.Error(f"{name!r} is not the name of an option")
    return name


def _text(name: str, value: Any, kind: str | None) -> str:
    if kind is None or isinstance(value, str):
        return str(value)  # an unknown name is the core's to refuse
    suits = isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
    if kind == "list" and suits:
        suits = all(isinstance(item, str) for item in value)
    if not suits:
        raise _C.Error(f"option {name}={value!r} is not of type {kind}; leave it out for its default")
    if kind == "list":
        return ",".join(value)
    if kind == "path":
        return os.fspath(value)
    return repr(float(value)) if kind in {"float", "memory"} else str(int(value))


def in_floats(options: Mapping[str, str]) -> dict[str, str]:
    """The same options without a calibration, and without what `keep` and `fixed` ask to be in bytes.

    Raises:
        Error: the text of `keep` or `fixed` cannot be read.
    """
    found = {name: text for name, text in options.items() if name != "calibration"}
    keep, fixed = _C.pins_in_floats(found.get("keep", ""), found.get("fixed", ""))
    return {**found, **{name: text for name, text in (("keep", keep), ("fixed", fixed)) if name in found}}
