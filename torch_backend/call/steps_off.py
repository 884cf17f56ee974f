"""How results of quantized regions are judged."""

from __future__ import annotations

import torch

from softneuro.error_measure import relative_error
from softneuro.torch_backend.compile.reals import numbers

_ALLOWED = 0.3


def error_of_quantized(net: torch.Tensor, host: torch.Tensor) -> float:
    """None within what steps explain, else the relative distance.

    What quantization makes of a last digit is a whole step, and such steps add up along a network. So two right
    executions may be a tenth apart. Wrong ones are far beyond that.
    """
    distance = relative_error(numbers(net), numbers(host))
    return 0.0 if distance <= _ALLOWED else distance
