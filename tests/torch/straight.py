"""A model's ATen graph through the backend's own partitioner, lowering and nets; Dynamo is not asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from softneuro.torch_backend import ops
from softneuro.torch_backend.backend import compile_inference
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from softneuro.torch_backend.explain import _describe
from softneuro.torch_backend.exported import _tensors_in
from softneuro.torch_backend.host_lines import host_lines
from softneuro.torch_backend.options import parse
from tests.torch.told import computed_by_host


class _Flat(nn.Module):
    """The model with a tuple of tensors as its result."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.out_spec: Any = None

    def forward(self, *inputs: torch.Tensor) -> tuple[Any, ...]:
        leaves, self.out_spec = pytree.tree_flatten(self.model(*inputs))
        return tuple(leaves)


class Straight:
    """What the backend makes of a model, called as the model is, without gradients.

    `dynamic` leaves sizes open that the model leaves open; equal ones stay equal. Nothing guards them: a model that
    fixes a size must be called with it. Else it is compiled for the first inputs, and others must be alike. Weights are
    the model's parameters and buffers; tensors that a function closes over have no place in it.
    """

    def __init__(self, model: Any, dynamic: bool = False, **options: Any) -> None:
        ops.load()
        self.graph: CompiledGraph | None = None
        self._flat = _Flat(model)
        self._dynamic = dynamic
        self._options = parse({"never_worse": False, "tune": "off", **options})
        self._call: Any = None

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The model's results."""
        with torch.no_grad():
            if self._call is None:
                self._call = self._compiled(inputs)
            return pytree.tree_unflatten(self._call(*inputs), self._flat.out_spec)

    def told(self) -> str:
        """What `explain` tells of the calls so far."""
        if self.graph is None:
            return "no supported region: the host runs everything"
        lines = [f"{len(self.graph.regions)} region(s)"]
        lines += (line for region in self.graph.regions for line in _describe(region))
        return "\n".join([*lines, *host_lines(self.graph.partition, [region.handle for region in self.graph.regions])])

    def layers(self) -> list[str]:
        """Descriptors of all that nets run; the host must run nothing else."""
        assert self.graph is not None
        assert not computed_by_host(self.graph.partition.host)
        shaped = [known for region in self.graph.regions for known in region.shaped.values()]
        assert all(known.host is None for known in shaped)
        return [layer.descriptor for known in shaped if known.plan for layer in known.plan.layers]

    def _compiled(self, inputs: Sequence[torch.Tensor]) -> Any:
        count = sum(map(_tensors_in, [*self._flat.parameters(), *self._flat.buffers()]))

        def inference(module: torch.fx.GraphModule, values: Sequence[Any]) -> Any:
            compiled = compile_inference(module, values, self._options, range(count))
            self.graph = compiled if isinstance(compiled, CompiledGraph) else None
            return compiled

        symbols = ShapeEnv() if self._dynamic else None
        mode = FakeTensorMode(shape_env=symbols, allow_non_fake_inputs=True)
        with tracing(TracingContext(mode)):
            return trace_inference(self._flat, [self._fake(mode, x) for x in inputs], inference)

    def _fake(self, mode: FakeTensorMode, x: torch.Tensor) -> torch.Tensor:
        if not self._dynamic:
            return mode.from_tensor(x)
        return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext([DimDynamic.DUCK] * x.dim()))


class Every(nn.Module):
    """Many functions in one graph, each of an input of its own that a layer precedes, with a layer behind it."""

    def __init__(
        self,
        cases: dict[str, tuple[Callable[..., Any], torch.Tensor]],
        before: Callable[[torch.Tensor], torch.Tensor] = lambda x: x * 1.5,
        behind: Callable[[torch.Tensor], torch.Tensor] = lambda y: y + 1,
    ) -> None:
        super().__init__()
        self.names = list(cases)
        self.functions = [function for function, _ in cases.values()]
        self.modules_of_functions = nn.ModuleList(f for f in self.functions if isinstance(f, nn.Module))
        self.inputs = [x for _, x in cases.values()]
        self.before, self.behind = before, behind

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = zip(self.functions, inputs, strict=True)
        return tuple(self.behind(function(self.before(x))) for function, x in pairs)
