"""Weights that compiled code does not fetch one by one.

Code that Dynamo compiles looks up every weight by its name, module for module, and AOT Autograd's wrapper looks at each
of them again. For a small network, in caches that its run has emptied, both take longer than its largest layer. Here
compiled code hands over the module in their place, and what takes the weights from it asks no more than whether they
are the same, unwritten, where they were.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._functorch._aot_autograd.schemas import OutputType
from torch._guards import Source, TracingContext
from torch.fx import GraphModule

import softneuro
from softneuro.torch_backend import _native
from softneuro.torch_backend.call import raising
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.call.direct import DirectCall, known_call, listeners
from softneuro.torch_backend.freshness import guards
from softneuro.torch_backend.freshness.paths import Paths, root_of
from softneuro.torch_backend.freshness.weights import Now

log = logging.getLogger("softneuro.torch_backend")


@dataclass(frozen=True)
class _Nothing(Source):
    """What compiled code passes for a weight: None."""

    def reconstruct(self, codegen: Any) -> None:
        codegen.append_output(codegen.create_load_const(None))

    def reconstruct_pycode(self, codegen: Any) -> str:
        return "None"

    @property
    def _name_template(self) -> str:
        return "None"


class FetchingCall:
    """Takes a graph's inputs; for one of its weights the module that all are reached from, for the others None."""

    def __init__(
        self,
        graph: CompiledGraph,
        direct: DirectCall,
        whole: Callable[..., Any],
        paths: _native.ObjectPaths,
        watch: guards.RootWatch | None,
    ) -> None:
        self._whole, self._paths, self._take, self._watch = whole, paths, paths.take, watch
        self._region = graph.regions[0]
        self._inputs, self._weights, self._sizes = direct.places
        self._handle, self._outputs = direct.handle, direct.outputs
        self._op: Callable[..., list[torch.Tensor]] = torch.ops.softneuro.run_known.default
        self.known_weights = _native.KnownWeights()  # of several modules of one class, which may share the code
        self._partial: _native.ObjectState | None = None  # the last state that did not lead to all of them

    def __call__(self, *arguments: Any) -> Any:
        """The graph's outputs."""
        root = arguments[self._weights[0]]
        try:
            now = self.known_weights.find(root) or self._look(root)
        except RuntimeError:  # tensors without memory, as tracers make them
            return self._call_whole(root, list(arguments))
        if not listeners:
            inputs, sizes = [arguments[i] for i in self._inputs], [arguments[i] for i in self._sizes]
            if found := self._op(self._handle, inputs, *now, sizes):
                return [found[i] for i in self._outputs]
        return self._call_whole(root, list(arguments))

    def without_net(self, *arguments: Any) -> Any:
        """The graph's outputs for weights that are known where no net is ready: as the region decides.

        It is all of the graph, so neither that nor AOT Autograd's wrapper has anything to add.
        """
        inputs, sizes = [arguments[i] for i in self._inputs], [arguments[i] for i in self._sizes]
        region = self._region
        run = region.run_as_the_host if softneuro._C.left_to_host() else region.resolve
        try:
            found = run(inputs, self._take(arguments[self._weights[0]]), sizes)
        except Exception as error:
            raising.take(error)
            raise
        return [found[i] for i in self._outputs]

    def _look(self, root: torch.nn.Module) -> Now:
        """At the module's weights, to be known from here on if they are all that it leads to."""
        state = self._watch.state(root) if self._watch is not None else None
        known, now = self._region.weights.look(self._take(root))
        if state is not None and state is not self._partial:
            if not state.includes(self._paths.asked(root)):
                self._partial = state
            elif state.holds():  # so it did when they were taken
                self.known_weights.set(root, known, state)
        return now

    def _call_whole(self, root: torch.nn.Module, arguments: list[Any]) -> Any:
        for place, weight in zip(self._weights, self._take(root), strict=True):
            arguments[place] = weight
        return self._whole(*arguments)


def fetch_apart(
    module: GraphModule, graph: CompiledGraph | None, whole: Callable[..., Any], watch: guards.Watch
) -> Callable[..., Any]:
    """What compiled code is to call for a graph of Dynamo's: `whole`, or what spares that code the weights.

    `graph` is what AOT Autograd calls, with the same inputs as `whole`; `watch` tells of the frame's guards, which are
    not made yet. Only while Dynamo compiles the graph's frame.
    """
    try:
        return (graph and _fetch_apart(module, graph, whole, watch)) or whole
    except Exception as error:
        log.debug("compiled code fetches its weights: %s: %s", type(error).__name__, error)
        return whole


def _fetch_apart(
    module: GraphModule, graph: CompiledGraph, whole: Callable[..., Any], watch: guards.Watch
) -> FetchingCall | None:
    direct, output = graph.direct, InstructionTranslator.current_tx().output
    if (
        direct is None
        or graph.kept is not None
        or output.export
        or output.shape_env.specializations
        or torch._dynamo.config.caching_precompile
    ):
        return None
    inputs = [node.meta["grapharg"] for node in module.graph.find_nodes(op="placeholder")]
    others, places, sizes = direct.places
    if not places or not set(places).isdisjoint([*others, *sizes]) or not _is_plain(inputs, graph):
        return None
    sources = [inputs[i].source for i in places]
    root = root_of(sources[0])
    start = output.local_scope.get(root.local_name) if root is not None else None
    if root is None or not isinstance(start, torch.nn.Module):
        return None
    paths = Paths(root, start)
    for place, source in zip(places, sources, strict=True):
        found = paths.find(source) if root_of(source) == root else None
        if found is None or found[1] != "tensor" or found[0] is not inputs[place].example:
            return None
    steps = [(step.holder, step.own_dict, step.key) for step in paths.steps]
    chosen = [number for source in sources if (number := paths.place(source)) is not None]
    call = FetchingCall(graph, direct, whole, _native.ObjectPaths(steps, chosen), watch.get(root))
    for place in places:
        inputs[place].source = _Nothing()
    inputs[places[0]].source = root
    output.add_cleanup_hook(functools.partial(_put_ahead, output.global_scope, call, direct, len(inputs)))
    return call


def _put_ahead(names: dict[str, Any], call: FetchingCall, direct: DirectCall, arguments: int) -> None:
    """Once Dynamo has compiled the frame: puts what needs no Python code before what it has compiled code call.

    That is `call` in a wrapper which switches Dynamo off for the frames within. It is still called where there is more
    to do than to run a net.
    """
    for name, wrapper in names.items():
        if getattr(wrapper, "_torchdynamo_orig_callable", None) is call:
            inputs, weights, sizes = direct.places
            ahead = known_call(
                direct,
                wrapper,
                call.known_weights,
                arguments=arguments,
                root=weights[0],
                inputs=inputs,
                sizes=sizes,
                without_net=torch.compiler.disable(call.without_net) if direct.by_python else None,
            )
            if ahead is not None:
                names[name] = ahead
            return


def _is_plain(inputs: Sequence[Any], graph: CompiledGraph) -> bool:
    """Whether AOT Autograd's wrapper does nothing but to pass on what it is given."""
    metadata = TracingContext.get().fw_metadata
    return (
        metadata is not None
        and len(inputs) == graph.inputs
        and all(type(i.example) in (torch.Tensor, torch.nn.Parameter) for i in inputs if i.is_tensor)
        and not any(i.example.is_neg() for i in inputs if i.is_tensor)  # which only torch's dispatcher makes so
        and not any(i.pass_arg_as_tensor for i in inputs)
        and not metadata.mutated_inp_runtime_indices
        and not metadata.num_intermediate_bases
        and not metadata.dynamic_outputs
        and not metadata.is_rng_op_functionalized
        and not metadata.tokens
        and all(output.output_type is OutputType.non_alias for output in metadata.output_info)
    )
