"""CONTRIBUTING's promise: one file and one line make a routine listed, tested and profiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.build_folder import like_this_build

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "data" / "toy_routine.cc"
DESCRIPTOR = "linear/cpu:float32:nchw/toy"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the toy, built and installed into a folder of its own."""
    copy = tmp_path_factory.mktemp("project")
    leave_out = shutil.ignore_patterns("build", ".*", "*.so", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=leave_out, dirs_exist_ok=True)
    shutil.copy(TOY, copy / "csrc" / "layers" / "linear" / "toy.cc")  # the file
    with (copy / "csrc" / "layers" / "linear" / "routines.inc").open("a") as routines:
        routines.write("SN_ROUTINE(linear_toy)\n")  # the line
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", "site", ".")
    environment = like_this_build(copy / "build" / "cmake") | {"SOFTNEURO_TORCH": "0"}
    done = subprocess.run(pip, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return copy


def run(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site / "site"), "SOFTNEURO_CACHE_DIR": str(site / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_the_toy_is_listed(site: Path) -> None:
    listed = run(site, "-c", "import softneuro; print(*(entry['descriptor'] for entry in softneuro.registry()))")
    assert DESCRIPTOR in listed.split()


@pytest.mark.slow
def test_the_toy_is_tested(site: Path) -> None:
    """The sweep over all routines fails if a listed one is never reached, so its passing means that the toy was run."""
    run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/layers/test_routines.py", "-k", "linear")


PROFILE = """
import numpy as np, softneuro
graph = softneuro.Graph()
x = graph.input("x", (4, 32))
graph.output(graph.add("linear", [x], weights={"weight": np.ones((16, 32), np.float32)}))
softneuro.tune(graph, {"threads": 1})
"""


@pytest.mark.slow
def test_the_toy_is_profiled(site: Path) -> None:
    run(site, "-c", PROFILE)
    database = "".join(path.read_text(errors="replace") for path in (site / "cache").rglob("*") if path.is_file())
    assert DESCRIPTOR in database
