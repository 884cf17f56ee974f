"""What a model's values are on the user's data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

import softneuro
from softneuro import tuner
from softneuro.option_texts import option_texts
from softneuro.providers import library, progress, report, sessions
from softneuro.providers.batches import Feeds, batches_of
from softneuro.tuned import Calibration

METHOD = "percentile:99.99"


def calibrate(
    model: Any,
    data: Any,
    out: str | os.PathLike[str] = "ranges.txt",
    *,
    num_batches: int = 32,
    method: str = METHOD,
    options: dict[str, Any] | None = None,
    sess_options: Any = None,
) -> Calibration:
    """Runs a model on data and writes the ranges of its values, and what roundings do to its outputs.

    One pass over at most `num_batches` of the data, in float32; memory does not grow with their number. Sessions with
    the options `calibration=PATH` and `max_error` may then store values in bytes.

    Args:
        model: path, the model's bytes, or an onnx.ModelProto.
        data: an iterable of dicts by input's name, of tuples in the order of inputs, or of arrays; an object with
            `get_next()` as onnxruntime.quantization has them; the path of an .npz file with an array for each input,
            maybe with an axis of batches in front; or of a folder `test_data_set_*`, or one of such.
        out: the file, to which sections are added, or in which they are replaced.
        num_batches: that are taken from the data at most.
        method: min_max, moving_average, percentile:P, mse or entropy.
        options: as of `session`.
        sess_options: as of `session`.

    Raises:
        Error: the data has no batch, or one that does not fit the model, or no part of the model can be calibrated.
        Exception: what the runtime raises.
    """
    inputs = cpu_session(source_of(model), sess_options).get_inputs()
    batches = batches_of(inputs, data, num_batches)
    given = options or {}
    return observe(
        source_of(model),
        batches,
        num_batches,
        path=os.fspath(out),
        method=method,
        options=given,
        sess_options=sess_options,
    )


def source_of(model: Any) -> str | bytes:
    """What a session is made of."""
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    return model if isinstance(model, bytes) else os.fspath(model)


def cpu_session(source: str | bytes, sess_options: Any) -> Any:
    """The model on the CPU provider alone."""
    onnxruntime = library.runtime()
    settings = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    return onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"])


def observe(
    source: str | bytes,
    batches: Iterable[Feeds],
    most: int,
    *,
    path: str,
    method: str,
    options: dict[str, Any],
    sess_options: Any,
) -> Calibration:
    """Writes the ranges of these batches."""
    softneuro._C.parse_options({"calibration_method": method})
    if Path(path).exists():
        softneuro._C.RangeTable.load(path)  # that of something else is not overwritten
    Path(path).resolve().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="softneuro-") as folder:
        collected = Path(folder) / "ranges.txt"
        given = option_texts({**options, "calibration": f"collect:{collected}", "calibration_method": method})
        count = _run(source, batches, most, given, sess_options)
        if not collected.exists():
            raise softneuro.Error("no run was observed: the log tells why")
        table = softneuro._C.RangeTable.load(str(collected))
    table.save(path)
    return Calibration(path, count, len(table.sections))


def _run(source: str | bytes, batches: Iterable[Feeds], most: int, options: dict[str, str], sess_options: Any) -> int:
    session = sessions.session(source, sess_options, **options)
    count = 0
    with tqdm(total=most, desc="softneuro: calibrating", unit="batch", leave=False, disable=None) as bar:
        for feeds in batches:
            session.run(None, feeds)
            count += 1
            bar.update()
            if told := tuner.listener.get():
                told(count, most)
    if count == 0:
        raise softneuro.Error("the data has no batch: calibration needs at least one")
    if not any(event["claimed"] for event in report.events(session) if event["event"] == "partition"):
        raise softneuro.Error("the CPU provider runs all of the model: there is nothing to calibrate")
    with progress.shown("measuring roundings"), report.outliving(session):
        del session  # which writes what was observed
    return count
