"""What `explain` and a partition tell of the host, less what computes nothing there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

IDLE = (
    "it moves elements at the rim of a region",
    "it computes a number, not a tensor",
    "it follows from weights alone, and only the host reads it",
)


def computing(text: str) -> list[str]:
    """Lines of `explain` but those about ops that compute nothing on the host."""
    return [line for line in text.splitlines() if not line.endswith(IDLE)]


def host_computes(text: str) -> list[str]:
    """Lines of `explain` about ops that the host computes."""
    _, _, told = text.partition("on the host:")
    return [line for line in computing(told) if line.strip()]


def computed_by_host(host: Mapping[str, Sequence[tuple[str, str]]]) -> set[str]:
    """Ops of a partition that the host computes, by name."""
    return {op for op, notes in host.items() if any(reason not in IDLE for _, reason in notes)}
