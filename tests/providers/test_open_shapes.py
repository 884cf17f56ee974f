"""Calls that the host runs inside a region of open shapes: their results go straight into the session's outputs."""

from __future__ import annotations

import pytest

from tests.providers.test_bad_input import run_script

# No net is exact enough for a region with this option.
LOSING = "max_error=1e-30, min_region_size=1, time_budget_s=0.1"
START = """
from onnx import helper
from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, make_model

random = np.random.default_rng(0)
w = (random.standard_normal((8, 8, 3, 3)) / 9).astype(np.float32)

def input_of(height, width):
    return {"x": random.standard_normal((1, 8, height, width)).astype(np.float32)}

def check(session, cpu, feeds):
    for result, expected in zip(session.run(None, feeds), cpu.run(None, feeds), strict=True):
        np.testing.assert_array_equal(result, expected)
"""
LOST = """
nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node(*{op}), *{more}]
model = make_model(nodes, {{"x": (1, 8, "h", "w")}}, {{"c": None, "y": None}}, {{"w": w, **{constants}}})
ours, cpu = providers.session(model, {options}), cpu_session(model)
first, second = input_of(12, 16), input_of(9, 7)
for feeds in (first, first, first, first):
    check(ours, cpu, feeds)
assert [e["host"] for e in events(ours) if e["event"] == "prepared"][0]
print("done")
"""


def test_the_host_runs_a_lost_region_without_a_copy() -> None:
    script = START + LOST.format(op='["Relu", ["c"], ["y"]]', more="[]", constants="{}", options=LOSING)
    done = run_script(script, SOFTNEURO_ORT_FAIL="HostCopy:again")
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
