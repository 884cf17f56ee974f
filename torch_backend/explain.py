"""Ahead-of-time tuning, and reports on what runs where."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import softneuro
from softneuro.budget import Budget
from softneuro.option_texts import option_texts
from softneuro.torch_backend import backend, registry
from softneuro.torch_backend import dry_run as dry
from softneuro.torch_backend.budgets.regions import for_these_shapes, listening
from softneuro.torch_backend.budgets.tune import tune_within
from softneuro.torch_backend.call import kept
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.call.outside import outside
from softneuro.torch_backend.call.runtime import RegionRuntime, Shaped
from softneuro.torch_backend.compile.ops.borders import borders_of
from softneuro.torch_backend.compile.ops.names import printable
from softneuro.torch_backend.compile.partitioning.partitioner import note
from softneuro.torch_backend.exported import LoadedProgram
from softneuro.torch_backend.freshness.tensors import addresses_of
from softneuro.torch_backend.host_lines import calls, host_lines
from softneuro.tuned import Tuned


def _run(model: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> list[CompiledGraph]:
    compiled = model
    if isinstance(model, LoadedProgram):
        if options:
            compiled = LoadedProgram(model.program, {**model.options, **options})
    elif not isinstance(model, torch._dynamo.eval_frame.OptimizedModule) or options:
        compiled = torch.compile(_plain(model), backend=backend.softneuro, options=options)
    with listening() as graphs, torch.no_grad():
        compiled(*inputs)
    return graphs


def _plain(model: Any) -> Any:
    """The model before it was compiled or loaded."""
    return model.program.module() if isinstance(model, LoadedProgram) else getattr(model, "_orig_mod", model)


@dataclass(frozen=True)
class ModelPlan:
    """The plans of a model's regions."""

    regions: list[softneuro.Plan]

    @property
    def layers(self) -> list[softneuro._C.LayerReport]:
        """What was chosen for each layer, regions in order."""
        return [layer for plan in self.regions for layer in plan.layers]

    @property
    def predicted_s(self) -> float:
        """Seconds that the regions are expected to take."""
        return sum(plan.predicted_s for plan in self.regions)

    @property
    def lower_bound_s(self) -> float:
        """No plans cost less under the measured costs."""
        return sum(plan.lower_bound_s for plan in self.regions)

    def __str__(self) -> str:
        return "\n".join(f"{layer.name}: {layer.descriptor}" for layer in self.layers)


def tune(
    model: Any,
    inputs: Any,
    *,
    evaluate: Callable[[Any], Any] | None = None,
    max_drop: float | None = None,
    max_relative_drop: float | None = None,
    num_batches: int = 32,
    transform: Callable[[Any], Any] | None = None,
    method: str = "percentile:99.99",
    max_evaluations: int = 8,
    pareto: bool = False,
    state: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    **options: Any,
) -> ModelPlan | Tuned:
    """Tunes a model for inputs of these shapes ahead of its first call, or within a budget on data.

    Ahead: `model` may be compiled already, or be a loaded program; `inputs` is one tensor or a tuple of arguments.
    `options` are those of the backend. The plans cover every region; costs and verdicts are in the database, so that a
    later `torch.compile` or `load` with the same options measures nothing.

    Within a budget: `model` is compiled, and `inputs` are data, an iterable of batches as `calibrate` takes them. The
    model then runs the fastest plan, layers in bytes included, that keeps to one of:

    - `max_error`: relative L2 of each output against the float model, proven on batches that nothing was chosen by.
    - `max_drop`, `max_relative_drop`: what `evaluate(model)` may fall by, absolute or as a share. It returns a score,
      or one for each sample; larger is better.

    Args:
        model: compiled; ahead, it may be yet to be.
        inputs: arguments of one call, or data.
        evaluate: takes the compiled model and returns its score.
        max_drop: of the score.
        max_relative_drop: of the score, as a share of the float model's.
        transform: what makes a model's arguments of an item of the data.
        num_batches: of the data, at most; every fourth is held back for proof.
        method: how ranges follow from values, as for `calibrate`.
        max_evaluations: calls of `evaluate`, at most.
        pareto: whether limits beside the chosen one are proven, too, for `Tuned.front`.
        state: a file that keeps evaluations, so that a broken-off search goes on.
        calibration: the file of ranges; None: the one in the cache directory.
        **options: of the backend.

    Raises softneuro.Error for data without a batch, a budget that is none, and a score that is none; and what
    `evaluate` and the model raise. The model runs as before then.
    """
    drops = [evaluate, max_drop, max_relative_drop]
    limited = "max_error" in options and not isinstance(inputs, torch.Tensor | tuple)
    if limited or any(value is not None for value in drops):
        error = options.pop("max_error", None)
        return tune_within(
            model,
            inputs,
            Budget(error, max_drop, max_relative_drop),
            evaluate=evaluate,
            num_batches=num_batches,
            transform=transform,
            method=method,
            max_evaluations=max_evaluations,
            pareto=pareto,
            state=state,
            calibration=calibration,
            options=option_texts(options),
        )
    return tune_ahead(model, inputs, **options)


def tune_ahead(model: Any, inputs: Any, **options: Any) -> ModelPlan:
    """Tunes a model for inputs of these shapes; see tune()."""
    arguments = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    with for_these_shapes():
        graphs = _run(model, arguments, {"tune": "profile", **options})
    regions = [part for graph in graphs for region in graph.regions for part in (region, *region.parts)]
    plans = [shaped.plan for region in regions for shaped in region.shaped.values()]
    return ModelPlan([plan for plan in plans if plan is not None])


def explain(model: Any, *inputs: Any, dry_run: bool = False, **options: Any) -> str:
    """Runs the model once without gradients and tells what ran where and why; prints the text and returns it.

    With `dry_run` the host runs all of it, and nothing is prepared or measured: it tells which ops would be taken.
    """
    if dry_run:
        text = dry.dry_run(_plain(model), inputs, options)
        print(text)
        return text
    graphs = _run(model, inputs, options)
    found = sum(bool(graph.regions) for graph in graphs)
    lines = [f"{found} graph(s) with regions"] if found else ["no supported region: the host runs everything"]
    for number, graph in enumerate(graphs):
        lines.append(f"graph {number}: {len(graph.regions)} region(s)")
        for region in graph.regions:
            lines += _describe(region)
        lines += host_lines(graph.partition, [region.handle for region in graph.regions])
    text = "\n".join(lines)
    print(text)
    return text


def _describe(region: RegionRuntime) -> list[str]:
    steps = len(region.region.steps)
    lines = [f"  region {region.handle}: {region.region.ops} ops" + (f", {steps} step(s) of the host" if steps else "")]
    for op, its in sorted(region.region.step_ops.items()):
        lines += (f"    stays with the host as a step: {line}" for line in calls(op, its))
    late: dict[str, list[tuple[str, str]]] = {}
    for node, reason in region.region.declined.items():
        note(late, node, reason)
    for op, its in sorted(late.items()):
        lines += (f"    stays with the host for some shapes: {line}" for line in calls(op, its))
    if region.given_up is not None:
        lines.append(f"    the host runs every call: {region.given_up}")
    found = outside(region.core)
    for one in found.inputs:
        lines.append(
            f"    input {one.name} was outside of what calibration observed, {one.least:.4g} to {one.most:.4g}, "
            f"in {one.calls} of {found.looked} calls looked at: up to {one.value:.4g}; calibrate again with such data"
        )
    for signature, shaped in region.shaped.items():
        shapes = ", ".join(map(str, borders_of(signature, len(region.region.inputs))))
        lines.append(f"    inputs {shapes}, {signature[0]} thread(s): " + _outcome(shaped))
        lines += _plan_lines(shaped.plan) if shaped.plan else []
        if (stats := shaped.net_stats) is not None:
            peak, planned, blobs = (stats[name] / 2**20 for name in ("peak_bytes", "arena_bytes", "blob_bytes"))
            lines.append(
                f"      peak {peak:.1f} MiB with packed weights, inputs and outputs; "
                f"arena {planned:.1f} MiB with workspaces, of {blobs:.1f} MiB of blobs"
            )
        for layer in shaped.plan.layers if shaped.plan else []:
            routine = layer.descriptor or "with a layer below"
            reason = f"; in floats: {layer.in_floats}" if layer.in_floats else ""
            lines.append(f"      {layer.name:32} {routine:60} {_times(layer)}{reason}")
    for weights in region.weights.sets():
        if weights.bytes and weights.run_ns:
            within = weights.calls_to_see_all(weights.run_ns)
            size = f"{weights.bytes / 2**20:.1f} MiB of weights"
            lines.append(f"    {size}: a slice is compared at a time, all of it within {within} calls like the last")
    if region.apart is not None:
        lines.append(f"    in its place, without the step(s): {len(region.parts)} region(s)")
        inner = [line for part in region.parts for line in _describe(part)]
        inner += host_lines(region.apart.partition, [part.handle for part in region.parts])
        lines += (f"    {line}" for line in inner)
    return lines


def _times(layer: softneuro._C.LayerReport) -> str:
    if not layer.measured:
        return "not measured"
    regret = "no other routine" if layer.regret == float("inf") else f"regret {1e3 * layer.regret:.3f} ms"
    return f"{1e3 * layer.seconds:8.3f} ms  {regret}"


def _plan_lines(plan: softneuro.Plan) -> list[str]:
    """What the plan is expected to cost as a whole."""
    memory = plan.memory
    text = f"packed weights {memory['packed'] / 2**20:.1f} MiB of {memory['weights'] / 2**20:.1f} MiB"
    if memory["limited"]:
        text += ", bounded by max_memory" if memory["fits"] else ", the least that was found: max_memory is below it"
    if memory["peak"]:
        text += f", peak {memory['peak'] / 2**20:.1f} MiB foretold"
    unknown = sum(not layer.measured for layer in plan.layers)
    if plan.carried:
        times = "carried over from other shapes, not measured"
    elif unknown:
        times = f"{unknown} of {len(plan.layers)} layers not measured"
    else:
        times = f"predicted {1e3 * plan.predicted_s:.3f} ms, at best {1e3 * plan.lower_bound_s:.3f} ms"
    return [f"      {times}; {text}"]


def _outcome(shaped: Shaped) -> str:
    if shaped.host is not None:
        return f"the host runs it: {printable(shaped.host)}"
    if shaped.verdict is not None:
        return f"softneuro runs it: {shaped.verdict.reason}, error {shaped.verdict.error:.1e}"
    return "softneuro runs it"


def refresh(model: Any = None) -> None:
    """Makes the next call of a model read its weights anew, at the cost of one preparation.

    For changes that nothing shows at once: part of a large weight written through `.data`, NumPy or a raw pointer. Else
    they are found within `calls_to_see_changes(model)` calls. It also ends that the host runs a region because its
    weights changed at every call. `model` is a module, compiled or not, or a loaded program; without one, or for
    anything else, all models of the process are refreshed.
    """
    addresses = _addresses(model)
    kept.forget_all()
    for region in registry.all_regions():
        region.refresh(addresses)


def calls_to_see_changes(model: Any = None) -> int:
    """Calls like the last one after which every byte of a model's weights has been compared with what nets have of it.

    Each call compares a slice of the weights, for at most 1 % of its time, so that a change that nothing else shows is
    found, too. 0 where each call compares all of them, and before the first call. `model`: as for `refresh`.
    """
    addresses = _addresses(model)
    sets = (known for region in registry.all_regions() for known in region.weights.sets(addresses))
    return max((known.calls_to_see_all(known.run_ns) for known in sets if known.run_ns), default=0)


def _addresses(model: Any) -> set[int] | None:
    """Addresses of the model's weights; None for all models of the process."""
    if isinstance(model, LoadedProgram):
        return set(addresses_of(model.weights))
    if isinstance(model, torch.nn.Module):
        return set(addresses_of([*model.parameters(), *model.buffers()]))
    return None
