"""Programs of torch.export: regions as in compiled models, without the guards and the bytecode of Dynamo's calls."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.graph import CodeGen
from torch.nn.modules.module import _has_any_global_hook
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

import softneuro
from softneuro import messages
from softneuro.torch_backend import ops
from softneuro.torch_backend.backend import compile_inference
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.call.direct import FixedCall, listeners
from softneuro.torch_backend.compile.tracing.in_place import write_in_place
from softneuro.torch_backend.compile.tracing.overlaps import Written
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from softneuro.torch_backend.freshness import shortcuts
from softneuro.torch_backend.options import parse

log = logging.getLogger("softneuro.torch_backend")
_KINDS_KNOWN = 1024  # of arguments: shapes, dtypes, devices


def load(program: ExportedProgram, **options: Any) -> LoadedProgram:
    """Makes a program of `torch.export.export` callable, with regions of reals on the CPU run by softneuro.

    `options` are those of the backend. Nothing is measured before the first call of each shape. The program's tensors
    are used as they are, shared with the model that was exported: changes in place are noticed, and replaced `.data`,
    but a parameter put in another's place in the model is not the program's. Raises TypeError for anything but a
    program, softneuro.Error for an option that does not exist or is out of range.
    """
    return LoadedProgram(program, options)


class LoadedProgram:
    """A callable that takes the arguments of the exported model and returns the pytree that it returned.

    Arguments that the program was not exported for raise what `program.module()` raises. That module, all host, runs a
    call that records gradients, or one under autocast, in a functorch transform or with tensors of another dtype or
    device. So it does where memory that the program writes to is another argument's or weight's, too, and while there
    are hooks for all modules. May be called from any number of threads. Copies and pickles hold the program, compiled
    anew.
    """

    def __init__(self, program: ExportedProgram, options: dict[str, Any]) -> None:
        if not isinstance(program, ExportedProgram):
            raise TypeError(f"load() takes a program of torch.export.export, not {type(program).__name__}")
        parsed = parse(options)
        if parsed.host != "eager":
            raise softneuro.Error(f"option host='{parsed.host}' is not for exported programs; use 'eager'")
        messages.show(parsed.verbose)
        ops.load()
        self.program = program
        self.options = dict(options)
        self._host = program.module()
        self._check = _checker(program)
        flat = _without_checks(program.module())
        self._examples = [node.meta["val"] for node in flat.graph.nodes if node.op == "placeholder"]
        self._free = [i for i, value in enumerate(self._examples) if isinstance(value, torch.Tensor | torch.SymInt)]
        flat = _without_constants(flat)
        self._module = flat
        # Every tensor that the program reads beside its arguments.
        self.weights: list[torch.Tensor] = [
            *dict(flat.named_parameters(remove_duplicate=False)).values(),
            *dict(flat.named_buffers(remove_duplicate=False)).values(),
        ]
        self._graph: CompiledGraph | None = None
        self._ready: FixedCall | None = None
        self._fixed = False  # by tracing: sizes that the program leaves open, or what a call would have to change
        self._written: Written | None = None  # if it changes any tensor
        self._run = self._compile(parsed)
        self._known: dict[Any, bool] = {}  # kinds of arguments that the program takes: whether the compiled graph does
        self._warned = False
        in_spec, self._out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        self._plain = in_spec == pytree.tree_structure((tuple(0 for _ in self._examples), {}))
        self._single = self._out_spec == pytree.tree_structure(0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program. Arguments and results: as of the exported model."""
        if torch.compiler.is_dynamo_compiling() or _has_any_global_hook():
            return self._host(*args, **kwargs)
        leaves: Sequence[Any] = args if self._plain and not kwargs else self._check(*args, **kwargs)
        try:
            # A tuple of shapes and the like is the cheapest thing that tells whether these arguments were seen before.
            kind = tuple([_kind(leaf) for leaf in leaves])
            ours = self._known.get(kind)
        except TypeError:  # unhashable, so not a leaf that a program takes
            ours = None
        if ours is None:
            ours = self._admit(self._check(*args, **kwargs), kind)
        if not ours or self._belongs_to_host(leaves):
            return self._host(*args, **kwargs)
        ready = None if listeners else self._ready
        results = self._run(leaves) if ready is None else ready(leaves, self._run)
        return results[0] if self._single else pytree.tree_unflatten(results, self._out_spec)

    def __reduce__(self) -> Any:
        return _load_again, (self.program, self.options)

    def __repr__(self) -> str:
        regions = len(self._graph.regions) if self._graph else 0
        return f"LoadedProgram({regions} region(s), {len(self.weights)} weights)"

    def _compile(self, parsed: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
        values = [self._examples[i] for i in self._free]
        trusted: list[bool] = []

        def inference(module: GraphModule, inputs: Sequence[Any]) -> Any:
            metadata = TracingContext.get().fw_metadata
            count = sum(map(_tensors_in, self.weights))
            whole = count == len(self.weights)  # no weight is made of others
            one_to_one = whole and len(inputs) == count + len(values)
            changed = set(metadata.mutated_inp_runtime_indices)
            known = one_to_one or (len(inputs) == count + len(values) and not changed)
            static = [i for i in range(count) if i not in changed] if known else []
            self._written = Written(self.weights, changed) if changed else None
            # What turns a caller's tensor, or has AOT Autograd merge two, is left to the host.
            self._fixed |= bool(changed) and not one_to_one
            self._fixed |= any(info.mutates_metadata for info in metadata.input_info)
            trusted.append(
                one_to_one and not changed and all(o.output_type.name == "non_alias" for o in metadata.output_info)
            )
            write_in_place(module, metadata.mutated_inp_runtime_indices)
            compiled = compile_inference(module, inputs, parsed, static)
            self._graph = compiled if isinstance(compiled, CompiledGraph) else None
            return compiled

        fake = detect_fake_mode(values) or detect_fake_mode(self._examples)
        symbols = fake.shape_env if fake is not None else None
        free = dict(symbols.replacements) if symbols is not None else {}
        with torch.no_grad(), tracing(TracingContext(fake)):
            call = trace_inference(self._module, values, inference)
        now = symbols.replacements if symbols is not None else {}
        # A number may be there from the start: another load has left it with the program.
        fixed = {s: v for s in self.program.range_constraints if (v := now.get(s)) is not None}
        fixed = {str(s): str(v) for s, v in fixed.items() if v != free.get(s) or v.is_number}
        if fixed:
            log.warning("the host runs the program: what was compiled would hold for sizes %s alone", fixed)
            self._fixed = True
        direct = self._graph.direct if self._graph else None
        everything = len(self._free) == len(self._examples)
        if self._graph and direct and trusted == [True] and everything and shortcuts.allowed(parsed):
            self._ready = FixedCall.of(direct, self._graph.regions[0].weights, self.weights, len(values))
        if everything:
            return lambda leaves: call(*leaves)
        return lambda leaves: call(*(leaves[i] for i in self._free))

    def _admit(self, leaves: Sequence[Any], kind: Any) -> bool:
        """Whether the compiled graph takes arguments of this kind, which the program takes."""
        ours = not self._fixed
        for leaf, example in zip(leaves, self._examples, strict=True):
            if isinstance(example, torch.Tensor):
                plain = type(leaf) in (torch.Tensor, torch.nn.Parameter)
                ours &= plain and (leaf.dtype, leaf.device, leaf.layout) == (
                    example.dtype, example.device, example.layout)  # fmt: skip
            else:
                ours &= not isinstance(leaf, torch.Tensor)
        if len(self._known) >= _KINDS_KNOWN:
            self._known.clear()
        self._known[kind] = ours
        return ours

    def _belongs_to_host(self, leaves: Sequence[Any]) -> bool:
        """Whether this call, of arguments that the graph takes, needs what only the host's own ops do."""
        if torch._C._is_any_autocast_enabled() or torch._C._functorch.peek_interpreter_stack() is not None:
            return True
        if self._written is not None and self._written.meet([leaves[i] for i in self._free]):
            return True
        if not torch.is_grad_enabled():
            return False
        tensors = (t for t in (*leaves, *self.weights) if isinstance(t, torch.Tensor))
        if not any(t.requires_grad for t in tensors):
            return False
        if not self._warned:
            self._warned = True
            warnings.warn(
                "softneuro: gradients are recorded and inputs or parameters require them, so the host runs this "
                "program; call it under torch.no_grad() or torch.inference_mode() to run it through softneuro",
                stacklevel=3,
            )
        return True


def _tensors_in(weight: Any) -> int:
    """How many tensors AOT Autograd makes of a weight: those within a quantized one, for instance."""
    if not is_traceable_wrapper_subclass(weight):
        return 1
    return sum(_tensors_in(getattr(weight, name)) for name in weight.__tensor_flatten__()[0])


def _load_again(program: ExportedProgram, options: dict[str, Any]) -> LoadedProgram:
    return LoadedProgram(program, options)


def _kind(leaf: Any) -> Any:
    return (type(leaf), leaf.shape, leaf.dtype, leaf.device, leaf.layout) if isinstance(leaf, torch.Tensor) else (
        type(leaf), leaf)  # fmt: skip


def _checker(program: ExportedProgram) -> Callable[..., Sequence[Any]]:
    """The program without its ops: checks arguments as it does and gives their leaves."""
    module = program.module()
    graph = module.graph
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    output = graph.output_node()
    output.args = (tuple(placeholders),)
    for node in reversed(list(graph.nodes)):
        if node.op not in ("placeholder", "output") and node.target != "_guards_fn":
            graph.erase_node(node)
    codegen: Any = graph._codegen
    spec = pytree.tree_structure(tuple(0 for _ in placeholders))
    codegen.pytree_info = codegen.pytree_info._replace(out_spec=spec)
    module._out_spec = spec
    module.recompile()
    return module


def _without_checks(module: GraphModule) -> GraphModule:
    """The ops on a flat list of arguments."""
    graph = module.graph
    for node in reversed(list(graph.nodes)):
        if (node.op == "call_module" and node.target == "_guards_fn") or (node.op == "get_attr" and not node.users):
            graph.erase_node(node)
    graph.set_codegen(CodeGen())
    return module


def _without_constants(module: GraphModule) -> GraphModule:
    """The same without placeholders of what is no tensor or symbol; tensors that are mere attributes become buffers."""
    graph = module.graph
    for node in list(graph.nodes):
        if node.op == "placeholder" and not isinstance(node.meta["val"], torch.Tensor | torch.SymInt):
            node.replace_all_uses_with(node.meta["val"])
            graph.erase_node(node)
    return GraphModule(module, graph)
