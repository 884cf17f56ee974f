"""Options of the backend."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from typing import Any

import softneuro


@dataclass(frozen=True)
class Options:
    """What `torch.compile(..., options={...})` accepts."""

    schemas: tuple[str, ...] = ()  # dtypes or schemas that may be used; empty: all
    max_error: float = 1e-4
    threads: int = 0
    tune: str = "profile"
    time_budget_s: float = 30.0
    host: str = "eager"
    plan: str = ""
    min_region_size: int = 1
    never_worse: bool = True
    verbose: int = 0
    given: dict[str, Any] = field(default_factory=dict, compare=False)

    def core(self, threads: int) -> dict[str, Any]:
        """The options as the core takes them."""
        return {**self.given, "threads": threads}


def parse(options: dict[str, Any] | None, mode: str | None = None) -> Options:
    """Checks names, types and ranges. Raises softneuro.Error naming the nearest valid name."""
    given = dict(options or {})
    known = [f.name for f in fields(Options) if f.name != "given"]
    for name in given:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
            raise softneuro.Error(f"unknown option '{name}' (did you mean '{nearest}'? known are {', '.join(known)})")
    parsed = Options(**given, given=given)
    if not parsed.max_error > 0:
        raise softneuro.Error(f"option max_error={parsed.max_error}: must be above zero")
    return parsed
