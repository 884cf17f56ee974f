"""The fastest session that the user's budget bears, proven on data."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softneuro
from softneuro.budget import Budget, Trial
from softneuro.error_measure import worst_error
from softneuro.option_texts import in_floats, option_texts
from softneuro.providers import library, report, sessions
from softneuro.providers.batches import Feeds, batches_of
from softneuro.providers.calibrate import METHOD, cpu_session, observe, source_of
from softneuro.tuned import Proof, Tuned, buy, by_content, check_budget, default_path

log = logging.getLogger("softneuro.providers")


def tune(
    model: Any,
    data: Any,
    *,
    max_error: float | None = None,
    evaluate: Callable[[Any], Any] | None = None,
    max_drop: float | None = None,
    max_relative_drop: float | None = None,
    max_evaluations: int = 8,
    pareto: bool = False,
    num_batches: int = 32,
    method: str = METHOD,
    calibration: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    options: dict[str, Any] | None = None,
    sess_options: Any = None,
) -> Tuned:
    """Finds the fastest plans, some of them in bytes, that keep to a budget of accuracy.

    Most batches calibrate the model; every fourth is held back, and proves what was chosen. The truth is what ONNX
    Runtime's CPU provider computes.

    Args:
        model: path, the model's bytes, or an onnx.ModelProto.
        data: as of `calibrate`.
        max_error: that each output may have on what was held back, relative L2.
        evaluate: given a session, returns its score, the larger the better, or one by sample.
        max_drop: that the mean score may have from that of floats.
        max_relative_drop: the same as a share of that of floats.
        max_evaluations: calls of `evaluate`, that of floats included.
        pareto: whether to try what decides nothing, too, for `Tuned.front`.
        num_batches: that are taken from the data at most.
        method: of calibration.
        calibration: file of ranges to write; by default one beside the cost database.
        state: file in which evaluations are kept, so that a search that was broken off goes on.
        out: compiled model to write, which needs neither the data nor the ranges; its shapes have to be fixed. Other
            entries on compiled models are taken from `sess_options`.
        options: of sessions.
        sess_options: as of `session`.

    Returns:
        What was chosen and tried. `session(model, **tuned.options)` runs it.

    Raises:
        Error: there is no budget or more than one, the data does not fit, or nothing can be calibrated.
        Exception: what `evaluate` and the runtime raise.
    """
    budget = Budget(max_error, max_drop, max_relative_drop)
    check_budget(budget, evaluate)
    path = os.fspath(calibration) if calibration is not None else default_path()
    tuning = Tuning(source_of(model), path, option_texts(options), sess_options)
    if out is not None:
        tuning.check_shapes()
    tuning.learn(data, num_batches, method)
    if calibration is None:
        path = tuning.name_ranges()
    if evaluate is None and not tuning.has_reals():
        raise softneuro.Error("no output is a tensor of reals: give evaluate= and max_drop=, not max_error=")
    score = None if evaluate is None else lambda: evaluate(tuning.session)
    chosen = buy(tuning, budget, evaluate=score, most=max_evaluations, pareto=pareto, state=state, ranges=path)
    if not tuning.rounds():
        log.warning("tune: no plan with bytes is faster and keeps to the budget: floats run")
    if out is not None:
        tuning.save(chosen, os.fspath(out))
    return Tuned(chosen, tuple(tuning.tried()), path, tuning.options_of(chosen.limit))


class Tuning:
    """A model under a budget: a session by the limit at hand, the truth on held-back batches, and what was tried."""

    def __init__(self, source: str | bytes, path: str, options: dict[str, str], sess_options: Any) -> None:
        self.session: Any = None  # which runs the plan of a limit
        self._source, self._path, self._options, self._sess_options = source, path, options, sess_options
        self._cpu = cpu_session(source, sess_options)
        self._proof: Proof[Feeds] = Proof()
        self._truths: list[list[np.ndarray]] = []
        self._tried: dict[float, Trial] = {}
        self._now: float | None = None

    def check_shapes(self) -> None:
        """Raises Error if an input's shape is open."""
        for entry in self._cpu.get_inputs():
            if any(not isinstance(dim, int) for dim in entry.shape):
                raise softneuro.Error(
                    f"input {entry.name} has the open shape {entry.shape}: a compiled model has plans of fixed shapes; "
                    "give sess_options with add_free_dimension_override_by_name, or --shape"
                )

    def learn(self, data: Any, most: int, method: str) -> None:
        """Calibrates with most of the batches, and keeps the others for proof."""
        batches = self._proof.others(batches_of(self._cpu.get_inputs(), data, most))
        observe(
            self._source,
            batches,
            most,
            path=self._path,
            method=method,
            options=self._options,
            sess_options=self._sess_options,
        )
        self._truths = [_reals(self._cpu.run(None, feeds)) for feeds in self._proof.batches]
        self._cpu = None

    def name_ranges(self) -> str:
        """Names the file of ranges by its content."""
        self._path = by_content(self._path)
        return self._path

    def has_reals(self) -> bool:
        """Whether any output has an error."""
        return any(bool(truth) for truth in self._truths)

    def apply(self, limit: float) -> Trial:
        """Has the session run the plan of a limit on the relative error; 0: floats."""
        if self._now != limit:
            self.session = None
            self.session = sessions.session(self._source, self._sess_options, **self.options_of(limit))
            self._now = limit
        if limit in self._tried:
            return self._tried[limit]
        results = [_reals(result) for result in self._prove(limit)]
        error = max(map(worst_error, results, self._truths))
        if not any(event["event"] == "prepared" for event in report.events(self.session)):
            self.session.run(None, self._proof.batches[0])  # for its plans
        self._tried[limit] = _trial(limit, error, report.events(self.session))
        return self._tried[limit]

    def _prove(self, limit: float) -> Iterator[list[Any]]:
        """Results of what was held back."""
        shapes = {tuple(array.shape for array in feeds.values()) for feeds in self._proof.batches}
        session = self.session
        if len(shapes) > 1 and limit > 0:  # else the host may run all of them but one, until others are known to pay
            options = {**self.options_of(limit), "never_worse": "0"}
            session = sessions.session(self._source, self._sess_options, **options)
        for feeds in self._proof.batches:
            yield session.run(None, feeds)

    def rounds(self) -> bool:
        """Whether the session has blobs of reals in bytes."""
        events = _last(report.events(self.session)).values()
        return any(event.get("foretold_error") for event in events if not event["host"])

    def options_of(self, limit: float) -> dict[str, str]:
        """Options that make the plans of a limit."""
        if limit == 0:
            return in_floats(self._options)
        return {**self._options, "calibration": self._path, "max_error": repr(limit)}

    def tried(self) -> list[Trial]:
        """The loosest limits first."""
        return [self._tried[limit] for limit in sorted(self._tried, reverse=True)]

    def note(self, trial: Trial) -> None:
        """Keeps what is known of a trial by now."""
        self._tried[trial.limit] = trial

    def save(self, trial: Trial, out: str) -> None:
        """Writes a compiled model with a trial's plans."""
        self.session, self._now = None, None
        session = compiling(self._source, out, self._sess_options, self.options_of(trial.limit))
        if _trial(trial.limit, 0, report.events(session)).plan != trial.plan:
            log.warning("tune: timed anew, the plans in %s are others than those that were proven", out)


def compiling(source: str | bytes, out: str, sess_options: Any, options: dict[str, str]) -> Any:
    """The session that writes a compiled model. Raises Error if there is nothing to save."""
    settings = sess_options if sess_options is not None else library.runtime().SessionOptions()
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", out)
    session = sessions.session(source, settings, **options)
    if sess_options is not None:
        settings.add_session_config_entry("ep.context_enable", "0")
    if not Path(out).exists():
        raise softneuro.Error("no region of the model runs faster here, so there is nothing to save")
    return session


def _reals(results: Iterable[Any]) -> list[np.ndarray]:
    return [one for one in results if isinstance(one, np.ndarray) and one.dtype.kind == "f"]


def _last(events: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last word on each region and shape."""
    return {(event["region"], event["inputs"]): event for event in events if event["event"] == "prepared"}


def _trial(limit: float, error: float, events: list[dict[str, Any]]) -> Trial:
    seconds, memory, texts, refused = 0.0, 0.0, [], False
    for key, event in sorted(_last(events).items()):
        texts.append(repr((key, bool(event["host"]), "" if event["host"] else event.get("choices", ""))))
        if event["host"]:
            seconds += event.get("host_seconds") or 0.0
            refused |= "error" in event and (event["error"] is None or event["error"] > limit)
        else:
            seconds += event.get("predicted_s") or 0.0
            memory += event.get("packed_bytes") or 0.0
    plan = hashlib.sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return Trial(limit=limit, plan=plan, seconds=seconds, error=error, memory=memory, refused=refused)
