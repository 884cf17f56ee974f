"""A second element type is a file and a line, as a layer and its routine are; plans take it like any other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
FILES = {
    "fixed16.h": "base/fixed16.h",
    "adapt_fixed16.cc": "layers/adapt/fixed16.cc",
    "halve.cc": "layers/halve/halve.cc",
    "halve_shift.cc": "layers/halve/shift.cc",
}
LINES = {
    "base/dtypes.inc": "SN_DTYPE(fixed16, Fixed16, 16, real)\n",
    "layers/adapt/routines.inc": "SN_ROUTINE(adapt_fixed16)\n",
    "layers/contract/layers.inc": "SN_LAYER(halve)\n",
    "layers/halve/routines.inc": "SN_ROUTINE(halve_shift)\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the type, built and installed into a folder of its own."""
    copy = tmp_path_factory.mktemp("project")
    leave_out = shutil.ignore_patterns("build", ".venv", ".git", "*.so", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=leave_out, dirs_exist_ok=True)
    core = copy / "csrc"
    (core / "layers" / "halve").mkdir()
    for source, target in FILES.items():
        shutil.copy(DATA / source, core / target)
    elements = core / "base" / "elements.h"
    elements.write_text(
        elements.read_text().replace("namespace softneuro {", '#include "base/fixed16.h"\n\nnamespace softneuro {', 1)
    )
    for target, line in LINES.items():
        with (core / target).open("a") as listing:
            listing.write(line)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", "site", ".")
    # Nearly all files know the types, so that nearly all are compiled.
    quick = "-DSOFTNEURO_LEVELS=scalar -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DSOFTNEURO_ORT=OFF"
    arguments = f"{os.environ.get('CMAKE_ARGS', '')} {quick}"
    own = {"SOFTNEURO_BUILD_DIR": str(copy / "build" / "cmake"), "SOFTNEURO_TORCH": "0", "CMAKE_ARGS": arguments}
    environment = os.environ | own
    done = subprocess.run(pip, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return copy


PROGRAM = """
import numpy as np, softneuro
from softneuro import _C

def build():
    graph = softneuro.Graph()
    x = graph.input("x", (4, 300))
    y = graph.add("activation", [x], function="relu")
    graph.add("halve", [y])
    halves = graph.layers()[-1]["outputs"]
    z = graph.add("activation", [halves[0]], function="relu")
    for blob in (z, halves[1]):
        graph.output(blob)
    return graph

options = {"threads": 1, "schemas": "float32,fixed16", "max_error": "0.01", "plan": "fixed.plan"}
plan = softneuro.tune(build(), options)
halve = [layer for layer in plan.layers if layer.type == "halve"]
assert halve[0].descriptor == "halve/cpu:fixed16:nchw/shift", halve[0].descriptor
assert halve[0].measured
text = open("fixed.plan").read()
assert "cpu:float32:nchw cpu:fixed16:nchw" in text and "cpu:fixed16:nchw cpu:float32:nchw" in text, text

again = softneuro.tune(build(), {**options, "tune": "off"})
assert [layer.descriptor for layer in again.layers] == [layer.descriptor for layer in plan.layers]
x = np.random.default_rng(0).uniform(-4, 4, (4, 300)).astype(np.float32)
for chosen in (plan, again):
    half, negative = softneuro.Net(build(), chosen).run([x])
    expected = np.floor(np.rint(np.maximum(x, 0) * 256) / 2) / 256
    np.testing.assert_array_equal(half, expected)
    np.testing.assert_array_equal(negative, -expected)
registered = [entry["descriptor"] for entry in softneuro.registry()]
assert len(set(registered)) == len(registered)
print("fine")
"""


@pytest.mark.slow
def test_the_type_is_measured_planned_saved_loaded_and_run(site: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(site / "site"), "SOFTNEURO_CACHE_DIR": str(site / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "fine", done.stdout[-4000:] + done.stderr[-4000:]
    assert "halve/cpu:fixed16:nchw/shift" in "".join(
        path.read_text(errors="replace") for path in (site / "cache").rglob("*") if path.is_file()
    )
