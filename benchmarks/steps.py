"""What takes long says what it is, how far it is, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Update = Callable[[int, int], None]  # how many of how many are done


@contextmanager
def step(console: Console, what: str, usually: str = "") -> Iterator[Update]:
    """Shows what is being done while it is; afterwards a line stays that says how long it took.

    Args:
        console: where to. One that is no terminal gets a line before and one after.
        what: is being done.
        usually: how long that takes.
    """
    start = time.perf_counter()
    begin = f"{what} ({usually})" if usually else what
    if not console.is_terminal:
        console.print(f"{begin} ...", highlight=False, soft_wrap=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(begin, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
    console.print(f"{what}: {time.perf_counter() - start:.0f} s", highlight=False, soft_wrap=True)
