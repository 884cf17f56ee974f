"""What this machine can do at most: the ceilings that routines are held against. Measured on request, never kept."""

from __future__ import annotations

from softneuro import _C

LEVELS = {"L1": 1, "L2": 2, "L3": 3, "memory": 4}


def fma_peak(isa: str | None = None, threads: int = 1, seconds: float = 0.05) -> float:
    """Float32 multiply-add peak of an instruction-set level (default: the best available) in FLOP/s, threads together.

    Raises:
        Error: the level is unknown or not available here.
    """
    return _C.measure_fma(isa or _C.available_isas()[0], threads, seconds)


def bandwidth(traffic: str, level: str, threads: int = 1, seconds: float = 0.05) -> float:
    """Bytes per second that a memory level serves to all threads together; 0 where there is no such level.

    Args:
        traffic: "read", "write", or "stream" for writes that go past the caches.
        level: "L1", "L2", "L3" or "memory".
        threads: how many run at once, each in a buffer of its own.
        seconds: how long each thread measures.
    """
    size = _C.bytes_within(LEVELS[level], threads)
    return _C.measure_bandwidth(traffic, size, threads, seconds) if size else 0.0
