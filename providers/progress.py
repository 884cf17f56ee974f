"""A progress bar of the tuning that happens inside ONNX Runtime, where somebody can see it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from tqdm import tqdm

from softneuro.providers import report

PERIOD_S = 0.2


@contextlib.contextmanager
def shown(label: str) -> Iterator[None]:
    """Follows the sessions that are made meanwhile, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    follower = threading.Thread(target=_follow, args=(label, done), daemon=True)
    follower.start()
    try:
        yield
    finally:
        done.set()
        follower.join()


def _follow(label: str, done: threading.Event) -> None:
    with tqdm(total=0, desc=label, unit="routine", leave=False) as bar:
        while not done.wait(PERIOD_S):
            if (state := report.latest_progress()) is None:
                continue
            bar.total = state[1]
            bar.update(state[0] - bar.n)
