"""The oldest runtimes that are supported, each in a folder of its own; the newest is the one that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOOR = [
    "test_sessions.py",
    "test_control_flow.py",
    "test_ep_context.py",
    "test_custom_ops.py",
    "test_bad_input.py",
    "test_abi.py",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "files", "selected"),
    [("1.25.0", DOOR, ""), ("1.22.1", ["test_custom_ops.py"], "not convert and not one_session")],
)
def test_oldest_runtimes(tmp_path: Path, version: str, files: list[str], selected: str) -> None:
    """The provider from 1.25 on, custom ops from 1.22 on."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    done = subprocess.run([*install, f"onnxruntime=={version}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"onnxruntime {version} cannot be installed here: {done.stderr[-200:]}")
    paths = [str(ROOT / "tests" / "providers" / name) for name in files]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", selected, *paths]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    shown = [sys.executable, "-c", "import onnxruntime; print(onnxruntime.__version__)"]
    assert subprocess.run(shown, capture_output=True, text=True, check=True, env=environment).stdout.strip() == version
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
