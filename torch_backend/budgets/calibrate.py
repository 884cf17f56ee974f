"""What a model's values are on the user's data."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

import softneuro
from softneuro import tuner
from softneuro.torch_backend.budgets.batches import Batch, batches_of
from softneuro.torch_backend.budgets.regions import Regions, regions_of
from softneuro.tuned import Calibration

log = logging.getLogger("softneuro.torch_backend")


def calibrate(
    model: Any,
    data: Iterable[Any],
    num_batches: int = 32,
    transform: Callable[[Any], Any] | None = None,
    *,
    method: str = "percentile:99.99",
    out: str | os.PathLike[str] = "ranges.txt",
) -> Calibration:
    """Runs a compiled model on data and writes the ranges of its values, and what roundings do to its outputs.

    One pass over at most `num_batches` of the data, in float32; memory does not grow with their number. Afterwards the
    model runs as before; with the options `calibration=PATH` and `max_error` it may store values in bytes.

    Args:
        model: of `torch.compile(..., backend="softneuro")`, or a loaded program.
        data: an iterable of tensors, tuples, dicts, or (input, label).
        num_batches: that are taken from it at most.
        transform: what makes a model's arguments of an item; None: see above.
        method: min_max, moving_average, percentile:P, mse or entropy.
        out: the file, to which sections are added, or in which they are replaced.

    Raises softneuro.Error for data without a batch, and what the model raises.
    """
    regions = regions_of.setdefault(model, Regions(model))
    path, before = os.fspath(out), regions.changes
    try:
        count = observe(regions, batches_of(model, data, num_batches, transform), path, method)
    finally:
        regions.change(**before)
    return Calibration(path, count, len(regions.regions))


def observe(regions: Regions, batches: Iterable[Batch], path: str, method: str) -> int:
    """Writes ranges of these batches; how many there were. The regions stay as they are for that."""
    Path(path).resolve().parent.mkdir(parents=True, exist_ok=True)
    if os.path.exists(path):
        softneuro._C.RangeTable.load(path)  # raises for anything but a file of ranges, before there is any work done
    softneuro._C.parse_options({"calibration_method": method})
    regions.change(calibration=f"collect:{path}", calibration_method=method)
    bar = tuner.Bar("softneuro: calibrating")
    count = 0
    try:
        for batch in batches:
            if not is_finite(batch):
                log.warning("calibration: batch %d has NaN or infinities, which are left out of ranges", count)
            regions.run(batch)
            count += 1
            (tuner.listener.get() or bar)(count, count)
        if count == 0:
            raise softneuro.Error("the data has no batch: calibration needs at least one")
        if not regions.regions:
            raise softneuro.Error("the host runs all of the model: there is nothing to calibrate")
        if regions.finish(tuner.listener.get()) == 0:
            raise softneuro.Error("no call of the model was observed: see the log for why")
    finally:
        bar.close()
    return count


def is_finite(batch: Batch) -> bool:
    """Whether none of its tensors has NaN or infinities."""
    return all(bool(torch.isfinite(tensor).all()) for tensor in batch.tensors() if tensor.is_floating_point())
