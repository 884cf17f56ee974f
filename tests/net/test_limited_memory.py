"""A plan says how much memory a run takes: with a fifth more it runs, with a tenth less it says why it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.net import limited_run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="limits are Linux's, and a sanitizer's memory is none of a plan's",
)
ISA = _C.available_isas()[0]


def descriptors(kind: str, weights: dict[str, np.ndarray], attrs: dict[str, list[int]]) -> dict[str, str]:
    """By algorithm: of the routines that read and write rows, the first tuning."""
    shape = (1, weights[next(iter(weights))].shape[1], limited_run.SIZE, limited_run.SIZE)
    accepted = _C.testing.accepting(kind, attrs, weights, [shape], {}, limited_run.THREADS)
    mine = [d for d in accepted if d.startswith(f"{kind}/cpu:float32:nchw/") and f"_{ISA}{{" in d]
    return {d.split("/")[2].split(f"_{ISA}")[0]: d for d in reversed(mine)}


@pytest.fixture(scope="module")
def plans() -> dict[str, list[str]]:
    sparse = np.zeros((64, 64, 3, 3), np.float32)
    sparse[::9, ::5, 1] = 1
    single = descriptors("conv2d", {"weight": sparse}, {"padding": [1] * 4})
    attrs = {"first_padding": [1] * 4, "second_padding": [1] * 4}
    pairs = descriptors("conv2d_pair", {"first_weight": sparse, "second_weight": sparse}, attrs)
    assert set(pairs) == {"fused_dsconv", "fused_bands"}
    return {"unfused": [single["dsconv"]] * 4, **{name: ["", pair, "", pair] for name, pair in pairs.items()}}


def peak(plan: list[str]) -> int:
    return softneuro.Net(limited_run.network(), plan, threads=limited_run.THREADS).stats["peak_bytes"]


def run_with(more: float, plan: list[str]) -> str:
    """What a process says that may have so many bytes more than after its imports."""
    command = [sys.executable, limited_run.__file__, str(int(more)), *plan]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["fused_dsconv", "fused_bands"])
def test_a_fused_plan_runs_in_what_it_states(name: str, plans: dict[str, list[str]]) -> None:
    stated = peak(plans[name])
    assert peak(plans["unfused"]) > 1.5 * stated
    assert run_with(1.2 * stated, plans[name]) == "ran: (1, 32, 1000, 1000), True"
    for more, plan in ((1.2, plans["unfused"]), (0.9, plans[name])):
        said = run_with(more * stated, plan)
        assert said.startswith("softneuro.Error: out of memory: "), said
