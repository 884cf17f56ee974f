"""Masks of torch.ao.pruning, which torchao's sparsifiers use too, seen by Dynamo.

It does not trace into torch.ao. So each masked layer would end a graph, and its weight come to the next one as a tensor
of the call.
"""

from __future__ import annotations

import logging

from torch._dynamo import trace_rules

log = logging.getLogger("softneuro.torch_backend")
_MODULE = "torch.ao.pruning.sparsifier.utils"  # whose forward is the product of a weight and its mask


def let_dynamo_trace() -> None:
    """Adds that module to those of torch that Dynamo traces into. A Dynamo that has no such list is left as it is."""
    try:
        trace_rules.MOD_INLINELIST.add(_MODULE)
        trace_rules.get_mod_inlinelist.cache_clear()
    except AttributeError as error:
        log.debug("masks of torch.ao.pruning end graphs: %s", error)
