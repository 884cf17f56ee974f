"""Where the build keeps its objects, for tests that look at them or build more."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_folder() -> Path:
    """The folder of setup.py's kept build; skips the test where the package was installed without one."""
    default = ROOT / "build" / f"cmake-{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    folder = Path(os.environ.get("SOFTNEURO_BUILD_DIR") or default)
    if not (folder / "build.ninja").exists():
        pytest.skip(f"no build folder at {folder}: install with `pip install --no-build-isolation -e .`")
    return folder


def cmake() -> str:
    """Path of CMake, skipping the test without one."""
    found = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("no cmake")
    return found
