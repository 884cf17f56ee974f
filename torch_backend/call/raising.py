"""What the host's ops raise within a region, past the C interface of ops, which lets no more than a text through."""

from __future__ import annotations

import threading

_kept = threading.local()


def keep(error: Exception) -> None:
    """Notes what a region is about to raise, in this thread."""
    _kept.error = error


def original(error: Exception) -> Exception | None:
    """What was kept, if `error` is it or is what the interface has made of it."""
    kept: Exception | None = getattr(_kept, "error", None)
    return kept if kept is not None and (kept is error or str(kept) in str(error)) else None


def take(error: Exception) -> Exception | None:
    """The same, for the last time."""
    found = original(error)
    _kept.error = None
    return found
