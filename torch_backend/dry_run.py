"""What would become of a model's ops, found without lowering, measuring or running anything of softneuro's."""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch.fx import GraphModule

from softneuro.torch_backend import ops
from softneuro.torch_backend.backend import changed_inputs, partition_of, static_inputs
from softneuro.torch_backend.compile.host import host
from softneuro.torch_backend.compile.ops.names import op_name
from softneuro.torch_backend.compile.partitioning.partitioner import Partition, Region
from softneuro.torch_backend.compile.tracing.in_place import write_in_place
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from softneuro.torch_backend.host_lines import calls, host_lines
from softneuro.torch_backend.options import parse

_seen: ContextVar[list[Partition] | None] = ContextVar("seen", default=None)


class _Graph:
    """A graph that the host runs, and that tells how it would be split."""

    _boxed_call = True  # takes a list of arguments, as AOT Autograd's wrappers give them

    def __init__(self, partition: Partition, run: Callable[[list[Any]], Any]) -> None:
        self._partition, self._run = partition, run

    def __call__(self, arguments: list[Any]) -> Any:
        seen = _seen.get()
        if seen is not None and not any(self._partition is other for other in seen):
            seen.append(self._partition)
        return self._run(arguments)


# Dynamo keeps what it has compiled by backend and options, so there is one such function for all runs.
def _backend(gm: GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None) -> Any:
    parsed = parse(options)

    def inference(module: GraphModule, inputs: Sequence[Any]) -> Any:
        write_in_place(module, changed_inputs())
        partition = partition_of(module, inputs, parsed, static_inputs(len(inputs)))
        return _Graph(partition, host.compile_graph(partition.module, inputs, parse({})))

    ops.load()
    return trace_inference(gm, example_inputs, inference, whole=parsed.host == "eager")


@contextlib.contextmanager
def _listening() -> Iterator[list[Partition]]:
    seen: list[Partition] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def dry_run(model: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> str:
    """Runs an uncompiled model once, all by the host, and tells what softneuro would take.

    A converter may still decline an op once shapes are known for good; `explain` without `dry_run` tells that.
    """
    compiled = torch.compile(model, backend=_backend, options=options)
    with _listening() as partitions, torch.no_grad():
        compiled(*inputs)
    found = sum(bool(partition.regions) for partition in partitions)
    lines = [f"{found} graph(s) with regions" if found else "no supported region: the host would run everything"]
    for number, partition in enumerate(partitions):
        lines.append(f"graph {number}: {len(partition.regions)} region(s)")
        for at, region in enumerate(partition.regions):
            lines += _describe(f"region {at}", region)
        lines += host_lines(partition, [f"region {at}" for at in range(len(partition.regions))])
    return "\n".join(lines)


def _describe(name: str, region: Region) -> list[str]:
    steps = f", {len(region.steps)} step(s) of the host" if region.steps else ""
    lines = [f"  {name}: {region.ops} ops{steps}"]
    taken = {node for step in region.steps for node in step} | region.constants
    nodes = (node for node in region.module.graph.nodes if node.op == "call_function" and node not in taken)
    for op, count in Counter(op_name(node) for node in nodes if node.target is not operator.getitem).most_common():
        lines.append(f"    {op} x{count}")
    for op, found in sorted(region.step_ops.items()):
        lines += (f"    would stay with the host as a step: {line}" for line in calls(op, found))
    return lines
