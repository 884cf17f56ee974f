"""Splits an ATen graph into convex regions and replaces each by one op."""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node

from softneuro.torch_backend.compile.ops.constants import find_constants, find_sized, free_of_sizes, free_of_values
from softneuro.torch_backend.compile.ops.names import layer_name, op_name
from softneuro.torch_backend.compile.ops.orders import axis_order, hints
from softneuro.torch_backend.compile.ops.sorting import sort_stable
from softneuro.torch_backend.compile.ops.strides import mend_strides
from softneuro.torch_backend.compile.ops.updates import updates
from softneuro.torch_backend.compile.ops.walks import with_sources
from softneuro.torch_backend.compile.partitioning.inside import rounds_to_steps
from softneuro.torch_backend.compile.partitioning.op_graph import tell

ops = torch.ops.softneuro


@dataclass
class Region:
    """Ops that will run as one net."""

    module: GraphModule  # the host's ops: placeholders are tensors, symbolic sizes, then weights
    inputs: list[Node]  # in the outer graph
    sizes: list[Node]
    weights: list[Node]
    outputs: list[Node]
    constants: set[Node]  # in module.graph
    weight_nodes: list[Node]  # placeholders in module.graph, in the order of weights
    content: str  # hash of everything above but weight values
    ops: int  # that compute
    steps: list[list[Node]]  # in module.graph: ops of the host that follow each other
    step_ops: dict[str, list[tuple[str, str]]]  # by op: (name, reason) of what the host runs
    nodes: Set[Node]  # in the outer graph

    @property
    def declined(self) -> Mapping[Node, str]:
        """Ops of the module that a converter has declined once shapes were known, and why."""
        found: dict[Node, str] = self.module.meta.get("declined", {})
        return found

    @functools.cached_property
    def outputs_in_steps(self) -> list[bool]:
        """By output: whether something on the way to it makes whole steps of reals."""
        rounding = rounds_to_steps(self.module.graph, self.constants)
        found: set[Node] = set()
        for node in self.module.graph.nodes:
            if node in rounding or not found.isdisjoint(node.all_input_nodes):
                found.add(node)
        return [node in found for node in self.module.graph.output_node().args[0]]


@dataclass(frozen=True)
class Cut:
    """Two regions, by number, that would be one without these ops."""

    before: int
    after: int
    ops: list[tuple[str, str]]  # op and name


@dataclass
class Partition:
    """Result of the split."""

    module: GraphModule
    regions: list[Region] = field(default_factory=list)
    host: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by op: (name, reason) of what stays
    cuts: list[Cut] = field(default_factory=list)
    constants: Set[Node] = frozenset()  # of the graph: what follows from weights alone


def build_region(
    nodes: list[Node],
    constants: Set[Node],
    *,
    ops: int,
    steps: Sequence[Sequence[Node]] = (),
    reasons: Mapping[Node, str],
) -> Region:
    """Copies the nodes, and the constants that they need, into a module of their own.

    `constants`: what is the same in all calls with inputs of a shape. `ops`: how many of the nodes compute. `steps`:
    ops of the host that follow each other; `reasons`: by step, why it is one.
    """
    inside = set(nodes)
    computed_before = {n for n in constants if n.op == "call_function"}
    read = [source for node in nodes for source in node.all_input_nodes if source not in inside]
    needed = with_sources(read, lambda n: n.all_input_nodes if n in computed_before else ())
    inputs = [n for n in needed if n not in constants and isinstance(n.meta["val"], torch.Tensor)]
    sizes = [n for n in needed if n not in constants and n not in inputs]
    weights = [n for n in needed if n in constants and n.op != "call_function"]
    computed = [n for n in needed if n in constants and n.op == "call_function"]
    outputs = [n for n in nodes if isinstance(n.meta["val"], torch.Tensor) and any(u not in inside for u in n.users)]

    graph = Graph()
    copies: dict[Node, Node] = {}
    for index, node in enumerate([*inputs, *sizes, *weights]):
        copies[node] = graph.placeholder(f"{'w' if node in weights else 'x'}{index}")
        copies[node].meta = dict(node.meta)
    for node in [*computed, *nodes]:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output(tuple(copies[n] for n in outputs))
    for node in outputs:
        value = node.meta["val"]
        copies[node].meta["order"] = axis_order(hints(value.stride()), hints(value.shape))
    module = GraphModule({}, graph)
    joined = [[copies[node] for node in step] for step in steps]
    step_ops: dict[str, list[tuple[str, str]]] = {}
    for node in nodes:
        if node in reasons:
            note(step_ops, node, reasons[node])
    if joined:
        sort_stable(module, joined)
    return Region(
        module=module,
        inputs=inputs,
        sizes=sizes,
        weights=weights,
        outputs=outputs,
        constants={copies[n] for n in [*weights, *computed]},
        weight_nodes=[copies[n] for n in weights],
        content=content_hash(graph),
        ops=ops,
        steps=joined,
        step_ops=step_ops,
        nodes=inside,
    )


def content_hash(graph: Graph) -> str:
    """Hash of the ops, their arguments and the shapes at the rim, the same in every process."""
    digest = hashlib.sha256()
    index = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        arguments = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: f"%{index[n]}")
        value = node.meta.get("val")
        shape = (str(tuple(value.shape)), str(value.dtype)) if isinstance(value, torch.Tensor) else str(value)
        line = (node.op, str(node.target) if node.op == "call_function" else "", str(arguments), str(shape))
        digest.update(repr((*line, node.meta.get("order"))).encode())
    return digest.hexdigest()[:24]


def note(by_op: dict[str, list[tuple[str, str]]], node: Node, reason: str) -> None:
    """Adds an op that the host runs."""
    by_op.setdefault(op_name(node), []).append((layer_name(node), reason))


def find_regions(
    module: GraphModule,
    static: Set[Node],
    min_region_size: int,
    *,
    join: bool,
    declined: Mapping[Node, str] | None = None,
) -> Partition:
    """The regions of a graph that are worth a call, and why every other op stays with the host.

    With `join`, ops of the host become steps of regions that they would cut apart. `declined`: ops that no region is
    to have, and why.
    """
    graph = module.graph
    partition = Partition(module)
    mend_strides(graph)
    free_of_values(graph)
    free_of_sizes(graph)
    partition.constants = constants = find_constants(graph, static)
    same = constants | find_sized(graph, constants)
    known = declined or {}
    told = tell(graph, same, known, join=join)
    found = told.graph.find_parts(min_region_size=min_region_size, join=join)
    order = {node: i for i, node in enumerate(graph.nodes)}
    for part in found.parts:
        steps = [told.all_nodes(step) for step in part.steps]
        reasons = {told.nodes[i]: found.step_reasons[i] for step in part.steps for i in step}
        nodes = sorted(told.all_nodes(part.nodes), key=order.__getitem__)
        partition.regions.append(build_region(nodes, same, ops=part.ops, steps=steps, reasons=reasons))
    _note_host(partition, {told.nodes[i]: reason for i, reason in found.host.items()})
    for before, after, between in found.cuts:
        if ops := [(op_name(node), layer_name(node)) for node in told.ops(between)]:
            partition.cuts.append(Cut(before, after, ops))
    return partition


def _note_host(partition: Partition, reasons: Mapping[Node, str]) -> None:
    """Names every op that is left to the host once the regions are taken out."""
    left: set[Node] = set()
    for node in reversed(partition.module.graph.nodes):
        if node in reasons:
            left.add(node)
        elif node in partition.constants and node.op == "call_function":
            left.update([node] if any(user in left or user.op == "output" for user in node.users) else [])
    for node in partition.module.graph.nodes:
        if node in left:
            note(partition.host, node, reasons.get(node, "it follows from weights alone, and only the host reads it"))


def replace_regions(module: GraphModule, regions: Sequence[tuple[Region, str]], target: Any) -> None:
    """Puts one call of `target` in place of each region's nodes. With each region: its handle.

    An op of torch's gives no outputs that are its inputs. Where a region has any, another op stands for `target`.
    """
    graph = module.graph
    order = {node: i for i, node in enumerate(graph.nodes)}
    replaced = []
    for region, handle in regions:
        # After the last of its inputs: convexity makes that a legal place once every region is replaced.
        last = max([*region.inputs, *region.sizes, *region.weights], key=lambda n: order[n])
        own = [n for n in region.outputs if updates(n)] if isinstance(target, OpOverload) else []
        made = [n for n in region.outputs if n not in own]
        arguments = (region.inputs, region.weights, region.sizes)
        with graph.inserting_after(last):
            if own:
                given = [n.args[0] for n in own]
                call = graph.call_function(ops.run_region_updating.default, (handle, given, *arguments))
            else:
                call = graph.call_function(target, (handle, *arguments))
        call.meta["val"] = [n.meta["val"] for n in made]
        replaced += [(n, n.args[0]) for n in own]
        for index, output in reversed(list(enumerate(made))):
            with graph.inserting_after(call):
                item = graph.call_function(operator.getitem, (call, index))
            item.meta = dict(output.meta)
            replaced.append((output, item))
    # Only now, in the calls of other regions too: else those would keep what is replaced alive.
    for output, item in replaced:
        output.replace_all_uses_with(item)
        if updates(output):
            graph.erase_node(output)  # what writes is never dead
