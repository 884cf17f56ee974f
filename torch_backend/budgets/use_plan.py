"""Another plan for a model that runs."""

from __future__ import annotations

import os
from typing import Any

import softneuro
from softneuro.option_texts import option_texts
from softneuro.torch_backend.budgets.batches import Batch
from softneuro.torch_backend.budgets.regions import Regions, regions_of
from softneuro.tuned import Tuned


def use_plan(model: Any, plan: Tuned | str | os.PathLike[str], *inputs: Any, max_error: float | None = None) -> None:
    """Has a compiled model run another plan from its next call on. Other threads may call it meanwhile.

    Args:
        model: of `torch.compile`, or a loaded program.
        plan: what `tune` returned, or a file that the option `plan` has written. Of several plans in a file for the
            same weights, the fastest one within the limit is taken.
        inputs: arguments of one call, for a model that was neither calibrated nor tuned in this process.
        max_error: the limit; None: the one that the model was compiled with, or that `plan` was tuned for.

    Raises softneuro.Error where the file does not exist, or nothing is known of the model yet.
    """
    regions = regions_of.get(model)
    if regions is None:
        if not inputs:
            raise softneuro.Error("nothing of this model has run yet: give arguments of one call to use_plan()")
        regions = regions_of[model] = Regions(model)
        regions.run(Batch(inputs, {}))
    changes: dict[str, Any] = {} if max_error is None else {"max_error": max_error}
    if isinstance(plan, Tuned):
        regions.change(**{**plan.options, **option_texts(changes)})
        return
    path = os.fspath(plan)
    if not os.path.exists(path):
        raise softneuro.Error(f"there is no plan file {path}: tune(..., plan=PATH) writes one")
    softneuro._C.PlanFile.load(path)  # raises for anything else
    regions.change(**option_texts({"plan": path, "calibration": "", **changes}))
