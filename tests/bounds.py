"""How far each routine may be from the float64 reference."""

from __future__ import annotations

import softneuro

BY_CLASS = {  # relative L2
    "exact": 1e-5,
    "winograd": 1e-3,
    "strassen": 1e-5,
    "bfloat16": 1e-4,
    "rounded": 1e-3,
    "winograd_1968": 1e-5,
}
BY_ALGORITHM = {"winograd_int16": 1e-2}  # of its largest tile
CLASSES: dict[str, str] = {entry["descriptor"]: entry["error"] for entry in softneuro.registry()}


def bound(descriptor: str) -> float:
    """Relative L2 error that a routine may have, by the class of its descriptor (params or not)."""
    plain = descriptor.split("{", maxsplit=1)[0]
    algorithm = plain.rsplit("/", 1)[1].rpartition("_")[0]
    return BY_ALGORITHM.get(algorithm, BY_CLASS[CLASSES[plain]])
