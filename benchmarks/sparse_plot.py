"""Time over zeros, a panel for each network and number of threads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


class Measured(Protocol):
    """What a point is made of."""

    @property
    def network(self) -> str: ...
    @property
    def way(self) -> str: ...
    @property
    def zeros(self) -> float: ...
    @property
    def threads(self) -> int: ...
    @property
    def contender(self) -> str: ...
    @property
    def ms(self) -> float: ...


STYLES = {"random": "-", "magnitude": "--"}


def lines(measured: Iterable[Measured]) -> dict[tuple[int, str], dict[tuple[str, str], list[tuple[float, float]]]]:
    """By panel (threads, network) and line (contender, way of pruning): zeros and the median of milliseconds."""
    samples: dict[tuple[int, str], dict[tuple[str, str], dict[float, list[float]]]] = {}
    for one in measured:
        panel = samples.setdefault((one.threads, one.network), {})
        panel.setdefault((one.contender, one.way), {}).setdefault(one.zeros, []).append(one.ms)
    return {
        panel: {
            line: [(zeros, statistics.median(ms)) for zeros, ms in sorted(points.items())]
            for line, points in found.items()
        }
        for panel, found in samples.items()
    }


def plot(path: Path, measured: Iterable[Measured]) -> None:
    """Draws a picture; what kind is said by the file's name."""
    from matplotlib.figure import Figure

    panels = lines(measured)
    threads = sorted({panel[0] for panel in panels})
    networks = list(dict.fromkeys(panel[1] for panel in panels))
    contenders = list(dict.fromkeys(line[0] for found in panels.values() for line in found))
    figure = Figure(figsize=(4.5 * len(networks), 3.8 * len(threads)), layout="constrained")
    axes = figure.subplots(len(threads), len(networks), squeeze=False)
    for (count, network), found in panels.items():
        ax = axes[threads.index(count)][networks.index(network)]
        for (contender, way), points in found.items():
            colour = f"C{contenders.index(contender)}"
            ax.plot(*zip(*points, strict=True), STYLES[way], color=colour, marker=".", label=f"{contender}, {way}")
        ax.set(title=f"{network}, {count} thread(s)", xlabel="zeros, %", ylabel="ms", yscale="log")
        ax.grid(visible=True, which="both", alpha=0.3)
    figure.legend(handles=axes[0][0].get_lines(), loc="outside right upper", fontsize="small")
    figure.savefig(path)
