"""Converters from ATen ops to layers, one file per op family; importing this package fills the table."""

from softneuro.torch_backend.compile.converters import (  # noqa: F401  (registers)
    activation,
    attention,
    cache,
    conv,
    elementwise,
    linear,
    norm,
    pool,
    quantize,
    reduce,
    resample,
    sdpa,
    shape,
    whole,
)
from softneuro.torch_backend.compile.converters.registry import (
    CONVERTERS,
    Call,
    Converter,
    decline_reason,
    find_converter,
)

__all__ = ["CONVERTERS", "Call", "Converter", "decline_reason", "find_converter"]
