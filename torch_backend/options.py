"""Options of the backend: the core's table, as `torch.compile(..., options={...})` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import softneuro
from softneuro.option_texts import option_texts


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

    `mode` is torch.compile's: "default" and None are the same, others belong to inductor.
    """
    if mode not in (None, "default"):
        raise softneuro.Error(f"mode='{mode}' is inductor's: give options={{...}} instead")
    texts = option_texts(options)
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
