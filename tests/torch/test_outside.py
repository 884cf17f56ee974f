"""Inputs that calibration has not observed the like of: counted and told where a plan has grids of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import softneuro.torch_backend as backend
from softneuro.torch_backend import registry
from softneuro.torch_backend.call.outside import Outside
from softneuro.torch_backend.call.outside import outside as outside_of
from softneuro.torch_backend.call.runtime import RegionRuntime
from tests.torch.test_budgets import Network, batches, compiled, in_bytes


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def model() -> Network:
    torch.manual_seed(0)
    return Network().eval()


@pytest.fixture
def data() -> list[torch.Tensor]:
    return [x.clamp(-2, 3) for x in batches(4)]


@pytest.fixture
def ranges(model: Network, data: list[torch.Tensor], tmp_path: Path) -> str:
    """Calibrated by data from -2 to 3."""
    path = str(tmp_path / "ranges.txt")
    backend.calibrate(compiled(model, tune="off"), data, out=path)
    torch._dynamo.reset()
    return path


def options(ranges: str, **more: Any) -> dict[str, Any]:
    """By which the first layers run in bytes, whatever is faster here."""
    keep = "first:qint8, second:qint8"
    return {"tune": "off", "calibration": ranges, "max_error": 0.9, "keep": keep, **more}


@pytest.fixture
def net(model: Network, data: list[torch.Tensor], ranges: str) -> Any:
    net = compiled(model, **options(ranges))
    call(net, data[0])
    assert in_bytes()
    return net


def call(net: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = net(x)
    return result


def region_of_test() -> RegionRuntime:
    """The last one made: one of an earlier test may be alive still."""
    return [region for region in registry.all_regions() if region.shaped][-1]


def outside() -> Outside:
    return outside_of(region_of_test().core)


def with_value(x: torch.Tensor, value: float) -> torch.Tensor:
    x = x.clone()
    x[0, 1, 3, 5] = value
    return x


def test_data_as_observed_is_no_news(net: Any, data: list[torch.Tensor], caplog: pytest.LogCaptureFixture) -> None:
    before = outside().looked
    for x in data:
        call(net, x)
    call(net, with_value(data[0], 3.4))  # less than a tenth of the range beyond
    found = outside()
    assert (found.looked, found.calls, found.inputs) == (before + 5, 0, [])
    assert "calibrate again" not in caplog.text


@pytest.mark.parametrize("value", [3.6, -2.6, 255.0, -1e30, float("inf"), float("-inf"), float("nan")])
def test_what_is_outside_is_told_once(
    net: Any, data: list[torch.Tensor], value: float, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        call(net, with_value(data[0], value))
    found = outside()
    [one] = found.inputs
    assert (found.calls, one.calls) == (3, 3)
    assert (one.least, one.most) == (-2, 3)
    assert str(one.value) == str(torch.tensor(value).item())
    told = [line for line in caplog.messages if "calibrate again" in line]
    assert len(told) == 1
    assert f"input '{one.name}'" in told[0]
    assert "from -2 to 3" in told[0]
    text = backend.explain(net, data[0])
    assert f"input {one.name} was outside of what calibration observed, -2 to 3, in 3 of {found.looked + 1}" in text


def test_the_farthest_value_is_kept(net: Any, data: list[torch.Tensor]) -> None:
    for value, kept in ((4.0, 4.0), (-9.0, -9.0), (5.0, -9.0), (float("inf"), float("inf")), (1e9, float("inf"))):
        call(net, with_value(data[0], value))
        assert outside().inputs[0].value == kept


def test_each_sixteenth_call_later(net: Any, data: list[torch.Tensor]) -> None:
    while outside().looked < 16:
        call(net, data[0])
    for _ in range(64):
        call(net, with_value(data[0], 9))
    found = outside()
    assert (found.looked, found.calls) == (20, 4)


def test_other_options_begin_anew(net: Any, model: Network, data: list[torch.Tensor], ranges: str) -> None:
    call(net, with_value(data[0], 9))
    assert outside().calls == 1
    region_of_test().core.reconfigure({key: str(value) for key, value in options(ranges, never_worse=0).items()})
    call(net, data[0])
    assert outside() == (1, 0, [])
    call(net, with_value(data[0], 9))
    assert outside().calls == 1


def test_floats_are_not_looked_at(model: Network, data: list[torch.Tensor], ranges: str) -> None:
    call(compiled(model, tune="off", calibration=ranges, keep="*:float32"), with_value(data[0], 1e9))
    plans = [one.plan for one in region_of_test().shaped.values()]
    assert not any("qint8" in layer.descriptor for plan in plans if plan for layer in plan.layers)
    assert outside() == (0, 0, [])


def test_a_plan_file_knows_what_was_observed(
    model: Network, data: list[torch.Tensor], ranges: str, tmp_path: Path
) -> None:
    path = tmp_path / "plans.txt"
    call(compiled(model, **options(ranges, plan=str(path))), data[0])
    assert "\ninput 0 -2 3\n" in path.read_text()
    Path(ranges).unlink()
    torch._dynamo.reset()
    again = compiled(model, plan=str(path), max_error=0.9, tune="off")
    call(again, with_value(data[0], 9))
    assert in_bytes()
    assert [(one.least, one.most) for one in outside().inputs] == [(-2, 3)]


def test_threads_count_together(net: Any, data: list[torch.Tensor]) -> None:
    before = outside().looked
    threads = [threading.Thread(target=call, args=(net, with_value(data[0], 9))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = outside()
    assert (found.looked - before, found.calls, found.inputs[0].calls) == (8, 8, 8)
