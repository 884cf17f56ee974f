"""The backend function: Dynamo graph -> AOT inference graph -> regions -> one op per region, the rest on the host."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule, Node

from softneuro import messages
from softneuro.torch_backend import ops
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.call.direct import DirectCall
from softneuro.torch_backend.call.kept import KeptOutputs
from softneuro.torch_backend.compile.host import host
from softneuro.torch_backend.compile.host.apart import put_regions
from softneuro.torch_backend.compile.partitioning.partitioner import Partition, find_regions
from softneuro.torch_backend.compile.tracing.in_place import keep_inside, write_in_place
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from softneuro.torch_backend.freshness import guards, shortcuts
from softneuro.torch_backend.freshness.fetching import fetch_apart
from softneuro.torch_backend.options import Options, parse

log = logging.getLogger("softneuro.torch_backend")


def changed_inputs() -> list[int]:
    """Indices of the graph's inputs that it changes, whose new values are its first outputs."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    return list(metadata.mutated_inp_runtime_indices) if metadata is not None else []


def static_inputs(count: int) -> list[int]:
    """Indices of the graph's inputs that are parameters or buffers which it does not itself change."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context else None
    if metadata is None:
        return []
    changed = set(changed_inputs())
    return [i for i in metadata.static_input_indices if i < count and i not in changed]


def _is_ordinary(value: Any) -> bool:
    """Whether a weight can be one of ours: it has memory that the CPU reads."""
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type == "cpu"


def partition_of(
    module: GraphModule, example_inputs: Sequence[Any], options: Options, static: Sequence[int]
) -> Partition:
    """The regions of a functional ATen graph, and what stays with the host; `static`: places of weights."""
    placeholders: list[Node] = [n for n in module.graph.nodes if n.op == "placeholder"]
    weights = {placeholders[i] for i in static if _is_ordinary(example_inputs[i])}
    # Inductor has fused what stays with it to what no step could be as fast as.
    eager = options.host == "eager"
    partition = find_regions(module, weights, options.min_region_size, join=eager)
    while not eager and keep_inside(module.graph, [region.nodes for region in partition.regions]):
        partition = find_regions(module, weights, options.min_region_size, join=False)
    return partition


def compile_inference(
    module: GraphModule, example_inputs: Sequence[Any], options: Options, static: Sequence[int]
) -> Any:
    """Callable (boxed) for a functional ATen graph, with regions where they are worth it.

    `static` are the places of the inputs that are weights: parameters and buffers which the graph does not change.
    """
    static = [i for i in static if _is_ordinary(example_inputs[i])]
    eager = options.host == "eager"
    partition = partition_of(module, example_inputs, options, static)
    level = logging.DEBUG if partition.regions else logging.INFO
    for op, calls in partition.host.items():
        for name, reason in calls:
            log.log(level, "%s (%s) stays with the host: %s", op, name, reason)
    if not partition.regions:
        log.info("no supported region: the graph stays with the host")
        run = host.compile_graph(module, example_inputs, options)
        return CompiledGraph(partition, [], [], None, run, inputs=len(example_inputs), kept=None)
    runtimes = put_regions(partition, options, by_python=eager)
    kept = KeptOutputs.of(module, partition.constants, reads=shortcuts.allowed(options))
    direct = DirectCall.of(module)
    run = host.compile_graph(module, example_inputs, options)
    if eager:
        static = []  # regions look at their own
    return CompiledGraph(partition, runtimes, static, direct, run, inputs=len(example_inputs), kept=kept)


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

        CPU ops on float32, float16 and bfloat16 run through softneuro, everything else, and every graph that needs
        gradients, on the host.
        Raises softneuro.Error for an option that does not exist or is out of range.
        """
        parsed = parse(options, mode)
        messages.show(parsed.verbose)
        ops.load()
        if _needs_gradients(example_inputs):
            self._warn_of_gradients()
            return host.compile_training(gm, example_inputs, parsed)

        graph: CompiledGraph | None = None

        def inference(module: GraphModule, inputs: Sequence[Any]) -> Any:
            nonlocal graph
            write_in_place(module, changed_inputs())
            compiled = compile_inference(module, inputs, parsed, static_inputs(len(inputs)))
            graph = compiled if isinstance(compiled, CompiledGraph) else None
            return compiled

        short = shortcuts.allowed(parsed)
        watch = guards.make_apart() if short else {}
        call = trace_inference(gm, example_inputs, inference, whole=parsed.host == "eager")
        return fetch_apart(gm, graph, call, watch) if short else call

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
