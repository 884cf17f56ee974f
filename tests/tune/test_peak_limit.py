"""The option max_memory: all that there is during a run, beside the model's own weights, stays within it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from tests.tune.records import records

RNG = np.random.default_rng(0)
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class Builder:
    """Layers with names of their own and weights without meaning."""

    def __init__(self, *shape: int) -> None:
        self.graph = softneuro.Graph()
        self.blob = self.graph.input("x", shape)
        self.channels = shape[1]

    def conv(self, name: str, channels: int, side: int, stride: int = 1, **more: Any) -> int:
        weights = {
            "weight": RNG.standard_normal((channels, self.channels, side, side), dtype=np.float32) / (4 * side),
            "bias": RNG.standard_normal(channels, dtype=np.float32),
        }
        padding = [side // 2] * 4
        self.blob = self.graph.add(
            "conv2d", [self.blob], name=name, weights=weights, stride=[stride] * 2, padding=padding
        )
        self.channels = channels
        return self.blob

    def add(self, kind: str, *others: int, **attrs: Any) -> int:
        self.blob = self.graph.add(kind, [self.blob, *others], **attrs)
        return self.blob


def residual_network(width: int, size: int) -> softneuro.Graph:
    """As ResNet-18, with other numbers of channels."""
    net = Builder(1, 3, size, size)
    net.conv("conv1", width, 7, 2)
    net.add("activation", function="relu")
    net.add("pool2d", function="max", kernel=[3, 3], stride=[2, 2], padding=[1] * 4)
    for stage, block in itertools.product(range(4), range(2)):
        before, channels, out = net.blob, net.channels, width << stage
        stride = 2 if stage > 0 and block == 0 else 1
        short = net.conv(f"layer{stage}.{block}.down", out, 1, stride) if channels != out else before
        net.blob, net.channels = before, channels
        net.conv(f"layer{stage}.{block}.conv1", out, 3, stride)
        net.add("activation", function="relu")
        net.conv(f"layer{stage}.{block}.conv2", out, 3)
        net.add("binary", short, function="add")
        net.add("activation", function="relu")
    net.add("adaptive_pool2d", function="avg", output_size=[1, 1])
    net.add("reshape", shape=[1, net.channels])
    net.graph.output(net.blob)
    net.graph.optimize()
    return net.graph


def off(**options: Any) -> dict[str, Any]:
    return {"tune": "off", "threads": 1, **options}


def peak(graph: softneuro.Graph, plan: softneuro.Plan) -> int:
    return softneuro.Net(graph, plan, threads=plan.threads).stats["peak_bytes"]


@settings(deadline=None, database=None)
@given(number=st.floats(1e-6, 1e6), unit=st.sampled_from(["", "x", *UNITS]))
def test_texts_are_read(number: float, unit: str) -> None:
    known = _C.parse_options({"max_memory": f"{number!r}{unit}"}).max_memory
    assert known == _C.parse_options({"max_memory": known}).max_memory
    assert known.endswith("B" if unit in UNITS else "x")
    assert math.isclose(float(known[:-1]), number * UNITS.get(unit, 1))


@pytest.mark.parametrize(
    "text", ["", "x", "MiB", "-1MiB", "0B", "0", "1.5 x", "1MiBx", "nanMiB", "infB", "1e308GiB", "AUTO"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(_C.Error, match=r"option max_memory: .*give a multiple of the weights"):
        _C.parse_options({"max_memory": text})


def test_numbers_are_multiples_of_the_weights() -> None:
    graph = residual_network(8, 32)
    weights = softneuro.tune(graph, off()).memory["weights"]
    texts = (1.0, "1x", f"{int(weights)}B")
    plans = [softneuro.tune(graph, off(max_memory=text)) for text in texts]
    assert len({plan.text(graph) for plan in plans}) == 1


# Packed weights are nearly all that there is, or blobs are a good part of it.
@pytest.mark.parametrize(("width", "size"), [(32, 64), (16, 192)])
@pytest.mark.parametrize("share", [0.7, 0.5])
@pytest.mark.parametrize("threads", [1, 3])
def test_peaks_keep_to_the_limit(width: int, size: int, share: float, threads: int) -> None:
    graph = residual_network(width, size)
    free = softneuro.tune(graph, off(threads=threads))
    assert not free.memory["limited"]
    limit = int(share * peak(graph, free))
    plan = softneuro.tune(graph, off(threads=threads, max_memory=f"{limit}B"))
    assert plan.memory["limited"]
    assert plan.memory["fits"]
    assert peak(graph, plan) == plan.memory["peak"] <= limit
    assert plan.memory["peak"] > 0.6 * limit
    assert plan.predicted_s >= free.predicted_s
    x = RNG.standard_normal((1, 3, size, size), dtype=np.float32)
    results = [softneuro.Net(graph, one, threads=threads).run([x])[0] for one in (free, plan)]
    assert relative_error(results[1], results[0]) < 1e-4


def test_measured_plans_keep_to_it_and_lose_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph = residual_network(8, 48)
    options = {"threads": 1, "time_budget_s": 2}
    free = softneuro.tune(graph, options)
    limit = int(0.7 * peak(graph, free))
    plan = softneuro.tune(graph, {**options, "max_memory": f"{limit}B"})
    assert plan.memory["fits"]
    assert peak(graph, plan) == plan.memory["peak"] <= limit
    assert plan.lower_bound_s <= plan.predicted_s
    assert records(tmp_path)
    again = softneuro.tune(graph, {**options, "tune": "cached", "max_memory": f"{limit}B"})
    assert again.text(graph) == plan.text(graph)


def test_a_limit_that_does_not_bind_changes_nothing() -> None:
    graph = residual_network(8, 64)
    free = softneuro.tune(graph, off())
    plan = softneuro.tune(graph, off(max_memory=f"{peak(graph, free)}B"))
    assert not plan.memory["limited"]
    assert plan.memory["peak"] == peak(graph, free)
    assert plan.text(graph) == free.text(graph)


def test_the_default_does_not_bound_blobs() -> None:
    """Few weights and a large image: what there is is many times the weights."""
    net = Builder(1, 3, 256, 256)
    net.conv("a", 16, 3)
    net.conv("b", 16, 3)
    net.graph.output(net.blob)
    net.graph.optimize()
    plan = softneuro.tune(net.graph, off())
    assert not plan.memory["limited"]
    assert peak(net.graph, plan) > 100 * plan.memory["weights"]


def test_what_cannot_be_reached_is_told(caplog: pytest.LogCaptureFixture) -> None:
    graph = residual_network(8, 64)
    plan = softneuro.tune(graph, off(max_memory="1KiB"))
    assert plan.memory["limited"]
    assert not plan.memory["fits"]
    least = peak(graph, plan)
    assert least == plan.memory["peak"] < 0.7 * peak(graph, softneuro.tune(graph, off()))
    (said,) = [record.message for record in caplog.records if "max_memory" in record.message]
    assert f"within max_memory=1024B, 1024 bytes (0.001 MiB): the smallest takes {least} bytes" in said
    again = softneuro.tune(graph, off(max_memory=f"{least}B"))
    assert again.memory["fits"]


def test_plans_for_other_shapes_and_of_files_keep_to_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    small, large, path = residual_network(8, 64), residual_network(8, 128), str(tmp_path / "a.plan")
    limit = int(0.6 * peak(large, softneuro.tune(large, off(plan=path))))
    plan = softneuro.tune(small, off(max_memory=f"{limit}B"))
    carried = plan.carry_over(large, 1)
    assert peak(large, carried) == carried.memory["peak"] <= limit
    assert peak(large, softneuro.tune(large, off(plan=path, max_memory=f"{limit}B"))) <= limit
    assert any("is above max_memory" in record.message for record in caplog.records)
