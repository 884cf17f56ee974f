"""The machine's ceilings: multiply-add peak by instruction-set level in GFLOP/s, bandwidth by memory level in GB/s."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import record
from softneuro import _C, available_isas, cpu_brand, cpu_id, device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=_C.physical_cores(), help="default: all cores (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, help="per figure (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    record.add_option(parser)
    arguments = parser.parse_args()

    counts = sorted({1, arguments.threads})
    headings = ["1 thread" if n == 1 else f"{n} threads" for n in counts]
    flops = Table(title="float32 multiply-add peak, GFLOP/s")
    traffic = Table(title="bandwidth, GB/s")
    flops.add_column("level")
    for column in ("level", "traffic", "buffer per thread"):
        traffic.add_column(column, justify="right" if column.startswith("buffer") else "left")
    for heading in headings:
        flops.add_column(heading, justify="right")
        traffic.add_column(heading, justify="right")

    figures: dict[str, float] = {}
    for isa in available_isas():
        peaks = [device.fma_peak(isa, n, arguments.seconds) / 1e9 for n in counts]
        figures |= {f"fma/{isa}/{n}": peak for n, peak in zip(counts, peaks, strict=True)}
        flops.add_row(isa, *(f"{peak:.1f}" for peak in peaks))
    for level, number in device.LEVELS.items():
        for kind in ("read", "write", "stream") if level == "memory" else ("read", "write"):
            rates = [device.bandwidth(kind, level, n, arguments.seconds) / 1e9 for n in counts]
            figures |= {f"{kind}/{level}/{n}": rate for n, rate in zip(counts, rates, strict=True)}
            size = f"{_C.bytes_within(number, arguments.threads) >> 10} KiB"
            traffic.add_row(level, kind, size, *(f"{rate:.1f}" if rate else "-" for rate in rates))

    console = Console()
    cache = ", ".join(f"{name} {size >> 10} KiB" for name, size in _C.caches().items())
    console.print(f"{cpu_brand()} ({cpu_id()}); {cache}", highlight=False)
    console.print(flops)
    console.print(traffic)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    if arguments.record:
        kinds = list(dict.fromkeys(name.rpartition("/")[0] for name, rate in figures.items() if rate))
        rows = [[str(n), *(f"{figures[f'{kind}/{n}']:.0f}" for kind in kinds)] for n in counts]
        record.write("peak", sys.argv[1:], ["threads", *kinds], rows)


if __name__ == "__main__":
    main()
