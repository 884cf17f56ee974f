"""What a region asks of the core: a plan for its graph."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from contextvars import ContextVar

import softneuro
from softneuro.torch_backend.options import Options

NETS_PER_REGION = 32  # prepared at once, by shapes and weights
SHAPES_PER_REGION = 256  # plans and verdicts remembered

# True while a plan is wanted that was made for the very shapes at hand.
tune_anew: ContextVar[bool] = ContextVar("tune_anew", default=False)


class PlanPool:
    """Plans of this process by structure and options.

    Dynamo compiles a model again for another batch, image size or grad mode: that is no reason to tune again.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._plans: OrderedDict[tuple[str, tuple[int, ...]], softneuro.Plan] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, structure: str, shapes: tuple[int, ...], plan: softneuro.Plan) -> None:
        """Keeps a plan that was made for graph inputs of these shapes."""
        with self._lock:
            self._plans[structure, shapes] = plan
            self._plans.move_to_end((structure, shapes))
            while len(self._plans) > self._capacity:
                self._plans.popitem(last=False)

    def nearest(self, structure: str, shapes: tuple[int, ...]) -> softneuro.Plan | None:
        """The plan whose shapes differ least; None if there is none of this structure."""
        with self._lock:
            known = [(s, plan) for (name, s), plan in self._plans.items() if name == structure]
        nearest = softneuro._C.nearest_shapes(shapes, [s for s, _ in known])
        return None if nearest is None else known[nearest][1]


_pool = PlanPool(SHAPES_PER_REGION)


def structure_of(graph: softneuro.Graph, texts: dict[str, str]) -> str:
    """Hash of what graphs of one model have in common whatever their shapes, and of what else a plan depends on."""
    layers = [
        (
            layer["type"],
            layer["attrs"] if layer["weights"] else None,
            sorted(layer["weights"].items()),
            sorted(layer["weight_types"].items()),
            layer["activation"],
        )
        for layer in graph.layers()
    ]
    place = softneuro._C.CostDb.default_directory()
    levels = softneuro.available_isas() + softneuro.available_extensions()
    text = repr((layers, graph.input_schemas, graph.output_schemas, sorted(texts.items()), levels, place))
    return hashlib.sha256(text.encode()).hexdigest()


def make_plan(
    graph: softneuro.Graph, options: Options, threads: int, allowed: float, shapes: tuple[int, ...]
) -> softneuro.Plan:
    """A plan whose error is to be below `allowed`, for a graph of these input shapes (sizes, input after input).

    It is the plan file's own, else one carried over from other shapes of the model, else a new one; only the last means
    measuring. With a plan file, what was made is added to it; softneuro._C.PlanFileError says why it cannot be used.
    """
    texts = options.core(threads=threads, max_error=allowed)
    structure = structure_of(graph, texts)
    near = None if tune_anew.get() else _pool.nearest(structure, shapes)
    if near is not None and near.graph_hash == graph.structural_hash() and not options.plan:
        return near
    plan = softneuro._C.load_plan(graph, softneuro._C.parse_options(texts), threads) if near is not None else None
    if near is not None and plan is None:
        plan = near.carry_over(graph, threads)
        if options.plan:
            plan.save(options.plan, graph)
    if plan is None:
        plan = softneuro.tune(graph, texts)
    if not plan.carried:
        _pool.add(structure, shapes, plan)
    return plan
