"""The regions of a compiled model, made to run otherwise."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch

import softneuro
from softneuro.torch_backend import registry
from softneuro.torch_backend.budgets.batches import Batch
from softneuro.torch_backend.call import following
from softneuro.torch_backend.call.compiled import CompiledGraph
from softneuro.torch_backend.call.direct import listeners
from softneuro.torch_backend.call.runtime import RegionRuntime
from softneuro.torch_backend.call.unready import tune_anew
from softneuro.torch_backend.exported import LoadedProgram

log = logging.getLogger("softneuro.torch_backend")


@contextlib.contextmanager
def listening() -> Iterator[list[CompiledGraph]]:
    """Graphs that this thread runs inside the block, each once."""
    seen: list[CompiledGraph] = []
    thread = threading.get_ident()

    def listen(graph: CompiledGraph) -> None:
        if threading.get_ident() == thread and not any(graph is other for other in seen):
            seen.append(graph)

    listeners.append(listen)
    try:
        yield seen
    finally:
        listeners.remove(listen)


class Regions:
    """All regions that a model's calls have met, under one set of changed options."""

    def __init__(self, model: Any) -> None:
        if not isinstance(model, torch._dynamo.eval_frame.OptimizedModule | LoadedProgram) and not hasattr(
            model, "_torchdynamo_orig_callable"
        ):
            raise softneuro.Error(
                "the model is not compiled: give torch.compile(model, backend='softneuro'), or a loaded program"
            )
        self._model = weakref.ref(model)
        self.regions: list[RegionRuntime] = []
        self._options: list[dict[str, str]] = []  # as they were, by region
        self._changes: dict[str, Any] = {}

    @property
    def model(self) -> Any:
        """The compiled model."""
        return self._model()

    def run(self, batch: Batch) -> Any:
        """Results of a call. Graphs that it meets for the first time get the options, and it is made again."""
        results = self._run(batch)
        return self._run(batch) if self._again else results

    def _run(self, batch: Batch) -> Any:
        with listening() as graphs, torch.no_grad():
            results = self.model(*batch.args, **batch.kwargs)
        self._again = False
        for graph in graphs:
            for region in graph.regions:
                for part in (region, *region.parts):
                    following.claim(self, part.weights.addresses())
                    self._again |= self.adopt(part) and bool(self._changes)
        return results

    def adopt(self, region: RegionRuntime) -> bool:
        """Has a region of the model follow, whenever torch compiles it; false if it does so already."""
        if any(region is known for known in self.regions):
            return False
        self.regions.append(region)
        self._options.append(region.options.core())
        self._warn_of_others(region)
        self._reconfigure(len(self.regions) - 1)
        return True

    def _warn_of_others(self, region: RegionRuntime) -> None:
        if len(region.weights.sets()) > 1:
            log.warning(
                "region %s is compiled code that several models share: all of them follow what one is tuned to; call "
                "torch._dynamo.reset() before each is compiled",
                region.handle,
            )

    def _reconfigure(self, index: int) -> None:
        if self._changes:
            self.regions[index].core.reconfigure({**self._options[index], **self._changes})

    @property
    def changes(self) -> dict[str, str]:
        """Options that they have on top of their own."""
        return dict(self._changes)

    def change(self, **changes: str) -> None:
        """Gives all of them these options on top of their own. Nothing that they have decided stays."""
        self._changes = changes
        alive = {id(region) for region in registry.all_regions()}
        kept = [pair for pair in zip(self.regions, self._options, strict=True) if id(pair[0]) in alive]
        self.regions, self._options = [pair[0] for pair in kept], [pair[1] for pair in kept]
        for region, options in zip(self.regions, self._options, strict=True):
            region.core.reconfigure({**options, **changes})

    def finish(self, progress: Any) -> int:
        """Ends the observing of calls; how many were observed by all regions together."""
        return sum(region.core.finish_calibration(progress) for region in self.regions)

    def plans(self) -> list[softneuro.Plan]:
        """Of the regions that run by a net, for all their shapes."""
        shaped = [one for region in self.regions for one in region.shaped.values()]
        return [one.plan for one in shaped if one.plan is not None and one.host is None]

    def seconds(self) -> float:
        """Of a call of all regions, as predicted, or as the host was seen to take."""
        total = 0.0
        for region in self.regions:
            for one in region.shaped.values():
                if one.plan is not None and one.host is None:
                    total += one.plan.predicted_s
                elif one.verdict is not None:
                    total += one.verdict.host_s
        return total

    def refuse(self, limit: float) -> bool:
        """Whether the host runs any, as its plan has erred by more than the limit."""
        verdicts = [one.verdict for region in self.regions for one in region.shaped.values() if one.host is not None]
        return any(verdict is not None and not verdict.error <= limit for verdict in verdicts)

    def rounds(self) -> bool:
        """Whether any layer is not in floats."""
        forms = ("qint8", "dynamic_linear/", "linear_blocks/")
        return any(form in layer.descriptor for plan in self.plans() for layer in plan.layers for form in forms)

    def names(self) -> str:
        """Of all that was chosen: equal for equal choices."""
        texts = []
        for region in self.regions:
            for signature, one in sorted(region.shaped.items()):
                chosen = [layer.descriptor for layer in one.plan.layers] if one.plan is not None else []
                texts.append(repr((region.region.content, signature, one.host is None, chosen)))
                if one.plan is not None:
                    texts.append(repr(([adapt[:3] for adapt in one.plan.adapts], one.plan.grids)))
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]


# Of models that were calibrated or tuned.
regions_of: weakref.WeakKeyDictionary[Any, Regions] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def for_these_shapes() -> Iterator[None]:
    """Plans are made for the very shapes at hand, at the first call of each."""
    token = tune_anew.set(True)
    softneuro._C.pause_first_sights(True)
    try:
        yield
    finally:
        softneuro._C.pause_first_sights(False)
        tune_anew.reset(token)
