"""Where the build keeps its objects, for tests that look at them or build more."""

import os
import shlex
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


def like_this_build(folder: Path) -> dict[str, str]:
    """Environment for building a copy of the project in its own folder, from this build's objects where they fit."""
    launcher = (sys.executable, Path(__file__).with_name("reuse_object.py"), ROOT, build_folder(), tool("ninja"))
    launcher_option = "-DCMAKE_CXX_COMPILER_LAUNCHER=" + ";".join(map(str, launcher))
    arguments = f"{os.environ.get('CMAKE_ARGS', '')} {shlex.quote(launcher_option)}"
    return {**os.environ, "SOFTNEURO_BUILD_DIR": str(folder), "CMAKE_ARGS": arguments.strip()}


def cmake() -> str:
    """Path of CMake, skipping the test without one."""
    return tool("cmake")


def tool(name: str) -> str:
    """Path of a program of the environment or the system, skipping the test without it."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"no {name}")
    return found
