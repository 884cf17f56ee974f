"""A process that forks after it has run a session: the child's sessions, the old one and new ones, run as well."""

from __future__ import annotations

import pytest

from tests.providers.scripts import run_script

SCRIPT = """
import os
from onnx import helper
from softneuro import providers
from tests.providers.conftest import make_model
import onnxruntime

random = np.random.default_rng(0)
w = random.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
nodes = [helper.make_node("Conv", [f"h{{i}}", "w"], [f"h{{i + 1}}"], pads=[1] * 4) for i in range(4)]
model = make_model(nodes, {{"h0": ("n", 16, "h", "w")}}, {{"h4": None}}, {{"w": w}})

def session():
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = {threads}
    return providers.session(model, settings, time_budget_s=0.1, min_region_size=1, never_worse={never_worse})

old = session()
x = random.standard_normal((1, 16, 40, 40)).astype(np.float32)
expected = old.run(None, {{"h0": x}})[0]
child = os.fork()
if child == 0:
    status = 1
    try:
        assert np.allclose(old.run(None, {{"h0": x}})[0], expected, atol=1e-4)
        assert np.allclose(old.run(None, {{"h0": x[:, :, :20]}})[0][:, :, :10], expected[:, :, :10], atol=1e-4)
        assert np.allclose(session().run(None, {{"h0": x}})[0], expected, atol=1e-4)
        status = 0
    finally:
        os._exit(status)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.allclose(old.run(None, {{"h0": x}})[0], expected, atol=1e-4)
print("done")
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("never_worse", [0, 1])
def test_fork(threads: int, never_worse: int) -> None:
    done = run_script(SCRIPT.format(threads=threads, never_worse=never_worse))
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
