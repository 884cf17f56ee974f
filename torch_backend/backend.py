"""The backend function: Dynamo graph -> AOT inference graph -> regions -> one op per region, the rest on the host."""

from __future__ import annotations

import logging
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule, Node

from softneuro import messages
from softneuro.torch_backend import guards, host, ops, registry
from softneuro.torch_backend.direct import DirectCall, pick
from softneuro.torch_backend.options import Options, parse
from softneuro.torch_backend.partitioner import Partition, find_regions, replace_regions, sort_stable
from softneuro.torch_backend.runtime import RegionRuntime
from softneuro.torch_backend.tracing import trace_inference
from softneuro.torch_backend.weights import versions_of

log = logging.getLogger("softneuro.torch_backend")
# Called with every compiled graph that runs, while `tune` or `explain` listens.
listeners: list[Callable[[CompiledGraph], None]] = []


class CompiledGraph:
    """A graph with its regions: what the host calls."""

    _boxed_call = True  # takes a list of arguments, as AOT Autograd's wrappers give them

    def __init__(
        self,
        partition: Partition,
        regions: list[RegionRuntime],
        static: Sequence[int],
        direct: DirectCall | None,
        run: Any,
    ) -> None:
        self.partition = partition
        self.regions = regions
        self._static = pick(static) if static else None
        self.direct = direct
        self._run = run
        self._versions: dict[int, list[int]] = {}  # by first weight: weights' versions at the last call
        for region in regions:
            weakref.finalize(self, registry.remove, region.handle).atexit = False

    def __call__(self, arguments: list[Any]) -> Any:
        """Runs the graph. Arguments: the AOT graph's placeholders, in order; consumed."""
        if self._static is not None:
            self._notice_changes(self._static(arguments))
        if listeners:
            for listener in listeners:
                listener(self)
        if self.direct is not None and (results := self.direct(arguments)) is not None:
            arguments.clear()
            return results
        return self._run(arguments)

    def _notice_changes(self, weights: Sequence[torch.Tensor]) -> None:
        versions = versions_of(weights)
        known = self._versions.get(id(weights[0]))
        if known != versions:
            # Anew for weights not seen before, too: they may have been changed since another object held them.
            addresses = {weight.data_ptr() for weight in weights}
            for region in self.regions:
                region.weights.forget(addresses)
            self._versions[id(weights[0])] = versions


def _static_inputs(count: int) -> list[int]:
    """Indices of the graph's inputs that are parameters or buffers which it does not itself change."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return []
    changed = set(metadata.mutated_inp_runtime_indices)
    return [i for i in metadata.static_input_indices if i < count and i not in changed]


def compile_inference(
    module: GraphModule, example_inputs: Sequence[Any], options: Options, static: Sequence[int]
) -> Any:
    """Callable (boxed) for a functional ATen graph, with regions where they are worth it.

    `static` are the places of the inputs that are weights: parameters and buffers which the graph does not change.
    """
    placeholders: list[Node] = [n for n in module.graph.nodes if n.op == "placeholder"]
    static = [i for i in static if isinstance(example_inputs[i], torch.Tensor)]
    partition = find_regions(module, {placeholders[i] for i in static}, options.min_region_size)
    if not partition.regions:
        log.info("no supported region: the graph stays with the host")
        return host.compile_graph(module, example_inputs, options)
    runtimes = []
    for region in partition.regions:
        runtime = RegionRuntime(region, options, host.compile_region(region, options))
        runtimes.append(runtime)
        log.info("region %s: %d ops, %d inputs, %d outputs", runtime.handle, region.ops, len(region.inputs),
                 len(region.outputs))  # fmt: skip
    calls = [(region, runtime.handle) for region, runtime in zip(partition.regions, runtimes, strict=True)]
    replace_regions(module, calls, torch.ops.softneuro.run_region.default)
    sort_stable(module)
    direct = DirectCall.of(module)
    run = host.compile_graph(module, example_inputs, options)
    return CompiledGraph(partition, runtimes, static, direct, run)


def _needs_gradients(example_inputs: Sequence[Any]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs)


class Backend:
    """What `torch.compile(model, backend="softneuro", options={...})` calls; see `softneuro`."""

    __name__ = "softneuro"  # torch shows it in its messages

    def __init__(self) -> None:
        self._warned_of_gradients = False

    def __call__(
        self,
        gm: GraphModule,
        example_inputs: Sequence[Any],
        *,
        mode: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> Callable[..., Any]:
        """Compiles one graph of Dynamo's.

        Float32 CPU ops run through softneuro, everything else, and every graph that needs gradients, on the host.
        Raises softneuro.Error for an option that does not exist or is out of range.
        """
        parsed = parse(options, mode)
        messages.show(parsed.verbose)
        ops.load()
        if _needs_gradients(example_inputs):
            self._warn_of_gradients()
            return host.compile_training(gm, example_inputs, parsed)

        def inference(module: GraphModule, inputs: Sequence[Any]) -> Any:
            return compile_inference(module, inputs, parsed, _static_inputs(len(inputs)))

        if parsed.watch_modules:
            guards.make_apart()
        return trace_inference(gm, example_inputs, inference, whole=parsed.host == "eager")

    def reset(self) -> None:
        """Called by torch._dynamo.reset(). Regions go by themselves, with the compiled graphs that hold them."""
        self._warned_of_gradients = False

    def _warn_of_gradients(self) -> None:
        if not self._warned_of_gradients:
            self._warned_of_gradients = True
            warnings.warn(
                "softneuro: gradients are recorded and inputs or parameters require them, so the host runs this graph; "
                "call the model under torch.no_grad() or torch.inference_mode() to run it through softneuro",
                stacklevel=3,
            )


softneuro = Backend()
