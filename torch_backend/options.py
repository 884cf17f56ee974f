"""Options of the backend: the core's table, as `torch.compile(..., options={...})` gives them."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import softneuro
from softneuro.option_texts import option_texts

log = logging.getLogger("softneuro.torch_backend")
# Modes of inductor's, which libraries give whatever the backend is, and the options that they stand for.
_PATIENT = {"time_budget_s": "60"}
_MODES: dict[str, dict[str, str]] = {
    "default": {},
    "reduce-overhead": {},
    "max-autotune": _PATIENT,
    "max-autotune-no-cudagraphs": _PATIENT,
}


@dataclass(frozen=True)
class Options:
    """Checked options; see `softneuro.option_table()` for what each means."""

    max_error: float
    threads: int
    tune: str
    host: str
    plan: str
    min_region_size: int
    never_worse: bool
    shortcuts: bool
    verbose: int
    texts: tuple[tuple[str, str], ...]  # as given, for the core

    def core(self, **changes: Any) -> dict[str, str]:
        """All options as the core takes them, some changed."""
        return {**dict(self.texts), **option_texts(changes)}


def parse(options: Mapping[str, Any] | None, mode: str | None = None) -> Options:
    """Checks names, types and ranges. Raises softneuro.Error naming the nearest valid name, or the range.

    `mode` is torch.compile's: one of inductor's. Those that search longer there have more time for profiling here, the
    others are the default. Options that are given count before it.
    """
    texts = {**_options_of(mode), **option_texts(options)}
    parsed = softneuro._C.parse_options(texts)
    return Options(
        max_error=parsed.max_error,
        threads=parsed.threads,
        tune=parsed.tune.name,
        host=parsed.host.name,
        plan=parsed.plan,
        min_region_size=parsed.min_region_size,
        never_worse=parsed.never_worse,
        shortcuts=parsed.shortcuts,
        verbose=parsed.verbose,
        texts=tuple(sorted(texts.items())),
    )


def _options_of(mode: str | None) -> dict[str, str]:
    if mode is None:
        return {}
    if mode not in _MODES:
        raise softneuro.Error(f"there is no mode '{mode}': known are {', '.join(_MODES)}; or give options={{...}}")
    if mode != "default":
        _tell(mode)
    return _MODES[mode]


@functools.cache
def _tell(mode: str) -> None:
    """Says once what a mode means."""
    given = ", ".join(f"{name}={value}" for name, value in _MODES[mode].items())
    log.info("mode='%s' is inductor's; here it means %s", mode, given or "the default")
