"""Whether calls may take the short cuts around torch's own way to a net: docs/torch.md, "What a call costs".

These are guards asked in our own way (guards.py), weights that compiled code does not fetch (fetching.py), torch's
tensors read where they lie (tensors.py), and calls on known weights (direct.py). All or none are taken.
"""

from __future__ import annotations

from softneuro.torch_backend.freshness import tensors
from softneuro.torch_backend.options import Options


def allowed(options: Options) -> bool:
    """Whether they are wanted, and this torch is the one they were built for."""
    return options.shortcuts and tensors.fields() is not None
