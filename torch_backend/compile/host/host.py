"""The host's part: how it runs whatever is not in a region."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch.aot_autograd import make_boxed_func
from torch.fx import GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule

from softneuro.torch_backend.compile.partitioning.partitioner import Region
from softneuro.torch_backend.options import Options


def compile_training(module: GraphModule, example_inputs: Sequence[Any], options: Options) -> Callable[..., Any]:
    """A graph that records gradients: as the host alone would run it."""
    if options.host == "inductor":
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(module, list(example_inputs))
    return module.forward


def compile_graph(module: GraphModule, example_inputs: Sequence[Any], options: Options) -> Callable[..., Any]:
    """Boxed callable for a functional ATen graph that may call regions."""
    if options.host == "inductor":
        from torch._inductor.compile_fx import compile_fx_inner

        return compile_fx_inner(_decompose(module), list(example_inputs))
    module.recompile()
    _LazyGraphModule.force_recompile(module)  # or every call would go through the module's lazy wrapper
    return make_boxed_func(module.forward)


def _decompose(module: GraphModule) -> GraphModule:
    """The graph in the ops that inductor knows; calls of regions stay as they are."""
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    values = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    fake = torch._guards.detect_fake_mode(values)
    with fake, torch.no_grad():
        return make_fx(module.forward, decomposition_table=select_decomp_table(), tracing_mode="real")(*values)


def compile_region(region: Region, options: Options) -> Callable[..., Any]:
    """The host's own execution of a region: to compare with, and to fall back on.

    Its function, not its module: hooks for all modules are not meant for ours.
    """
    region.module.recompile()
    _LazyGraphModule.force_recompile(region.module)
    forward: Callable[..., Any] = region.module.forward
    if options.host != "inductor":
        return forward
    compiled: list[Any] = []
    lock = threading.Lock()

    def run(*arguments: Any) -> Any:
        if any(isinstance(a, torch.Tensor) and type(a) is not torch.Tensor and type(a).__name__ == "FakeTensor"
               for a in arguments):  # fmt: skip
            return forward(*arguments)
        with lock:
            if not compiled:
                compiled.append(torch.compile(forward, backend="inductor", dynamic=False))
        return compiled[0](*arguments)

    return run
