"""Lines of reports about what stays with the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from softneuro.torch_backend.compile.ops.names import printable
from softneuro.torch_backend.compile.partitioning.partitioner import Partition

_EXAMPLES = 3  # names shown per op


def some(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:_EXAMPLES]) + (", ..." if len(names) > _EXAMPLES else "")


def calls(op: str, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """An op's calls, given as (name, reason), by reason."""
    for reason in sorted({reason for _, reason in found}):
        names = [name for name, other in found if other == reason]
        yield f"{op} x{len(names)} ({some(names)}): {printable(reason)}"


def host_lines(partition: Partition, regions: Sequence[str]) -> list[str]:
    """What runs outside of regions, given by name, and what cuts these in two."""
    lines = ["  on the host:"] if partition.host else []
    for op, found in sorted(partition.host.items()):
        lines += (f"    {line}" for line in calls(op, found))
    for cut in partition.cuts:
        names = [f"{op} ({name})" for op, name in cut.ops]
        lines.append(f"  between {regions[cut.before]} and {regions[cut.after]}: {some(names)}")
    return lines
