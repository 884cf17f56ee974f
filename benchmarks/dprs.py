"""Time of routine selection on nets of known form: `python -m benchmarks.dprs`."""

from __future__ import annotations

import random
import statistics
import time

from softneuro import _C


class Builder:
    """A net whose layers have one routine per schema, the same on all slots, with random costs."""

    def __init__(self, schemas: int, seed: int = 0) -> None:
        self.schemas = schemas
        self.rng = random.Random(seed)
        self.layers: list[_C.DprsLayer] = []
        self.blobs = 1

    def layer(self, *inputs: int) -> int:
        """Adds a layer; returns its blob."""
        labels = [_C.DprsLabel(self.rng.randrange(64, 640) / 64, [s] * len(inputs), [s]) for s in range(self.schemas)]
        self.layers.append(_C.DprsLayer(list(inputs), [self.blobs], labels))
        self.blobs += 1
        return self.blobs - 1

    def build(self) -> _C.DprsProblem:
        n = self.schemas
        adapts = [
            [0.0 if i // n == i % n else self.rng.randrange(1, 192) / 64 for i in range(n * n)]
            for _ in range(self.blobs)
        ]
        return _C.DprsProblem(n, self.blobs, self.layers, [], adapts, [(0, [0])], [(self.blobs - 1, 0)])


def chain(layers: int, schemas: int) -> _C.DprsProblem:
    """A straight net."""
    net = Builder(schemas)
    blob = 0
    for _ in range(layers):
        blob = net.layer(blob)
    return net.build()


def residual(blocks: int, schemas: int) -> _C.DprsProblem:
    """Blocks of three layers and an addition, as ResNet-50's."""
    net = Builder(schemas)
    blob = net.layer(0)
    for _ in range(blocks):
        branch = net.layer(net.layer(net.layer(blob)))
        blob = net.layer(branch, blob)
    return net.build()


def dense(layers: int, schemas: int) -> _C.DprsProblem:
    """A dense block: each concatenation reads the block's input and all earlier layers."""
    net = Builder(schemas)
    parts = [0]
    for _ in range(layers):
        parts.append(net.layer(net.layer(net.layer(*parts))))
    net.layer(*parts)
    return net.build()


def tangle(layers: int, schemas: int) -> _C.DprsProblem:
    """A net without structure: each layer reads any three earlier blobs."""
    net = Builder(schemas)
    for _ in range(layers):
        net.layer(*net.rng.choices(range(max(0, net.blobs - 12), net.blobs), k=3))
    return net.build()


def main() -> None:
    cases = {
        "chain, 300 layers, 8 schemas": chain(300, 8),
        "residual, 75 blocks, 8 schemas": residual(75, 8),
        "dense block, 24 layers, 3 schemas": dense(24, 3),
        "dense block, 24 layers, 8 schemas": dense(24, 8),
        "dense block, 48 layers, 4 schemas": dense(48, 4),
        "tangle, 100 layers, 6 schemas": tangle(100, 6),
    }
    print(f"{'net':36} {'ms':>9} {'variables':>9} {'largest table':>13} {'nodes':>8}  result")
    for name, problem in cases.items():
        times = []
        for _ in range(3):
            start = time.perf_counter()
            result = _C.dprs_solve(problem)
            times.append(1e3 * (time.perf_counter() - start))
        how = "exact" if result.exact else f"gap {100 * result.gap / result.cost:.1f}%"
        stats = result.stats
        print(
            f"{name:36} {statistics.median(times):9.2f} {stats.variables:9} {stats.largest_table:13.3g}"
            f" {stats.nodes:8}  {how}"
        )


if __name__ == "__main__":
    main()
