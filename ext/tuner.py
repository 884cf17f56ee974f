"""Tuning from Python: options by name, a progress bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

from softneuro import _C, messages
from softneuro.option_texts import option_texts

log = logging.getLogger("softneuro.tune")

# Told how many routines of how many are measured, in the place of a bar: for programs that show progress themselves.
listener: ContextVar[Callable[[int, int], None] | None] = ContextVar("listener", default=None)


class Bar:
    """A progress bar that appears only when there is something to measure and somebody to see it."""

    def __init__(self, label: str = "softneuro: tuning") -> None:
        self._label = label
        self._visible = sys.stderr.isatty()
        self._bar: tqdm[Any] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Shows how many routines of how many are measured."""
        if self._bar is None:
            self._bar = tqdm(total=total, desc=self._label, unit="routine", leave=False, disable=not self._visible)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()


def tune(graph: _C.Graph, options: Mapping[str, Any] | None = None, *, label: str = "softneuro: tuning") -> _C.Plan:
    """Chooses a routine for every layer of an optimised graph.

    Args:
        graph: as `Graph.optimize` leaves it.
        options: by name, values as Python objects or text; `softneuro.option_table()` lists them. `threads` = 0 means
            the physical cores.
        label: of the progress bar, which is shown if standard error is a terminal.

    Raises:
        Error: an option is unknown or out of range, or a layer cannot be run at all.
    """
    parsed = _C.parse_options(option_texts(options))
    messages.show(parsed.verbose)
    bar = Bar(label)
    try:
        plan = _C.tune(graph, parsed, parsed.threads or _C.physical_cores(), listener.get() or bar)
    finally:
        bar.close()
    counts = plan.counts
    log.info(
        "planned %d layers in %.2f s: %.3f ms predicted, %.3f ms at best; %d costs measured, %d recalled, %d guessed",
        len(plan.layers),
        plan.tuning_s,
        1e3 * plan.predicted_s,
        1e3 * plan.lower_bound_s,
        counts["measured"],
        counts["recalled"],
        counts["guessed"],
    )
    return plan
