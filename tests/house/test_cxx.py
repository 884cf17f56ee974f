"""Builds and runs the tests that are written in C++ (csrc/tests)."""

import fcntl
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.house.build_folder import build_folder, cmake

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "csrc" / "tests").glob("*_test.cc"))


@pytest.fixture(scope="session")
def program() -> Path:
    folder = build_folder()
    with (folder / "cxx_tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one builder at a time, however many test processes there are
        subprocess.run([cmake(), "--build", str(folder), "--target", "cxx_tests"], check=True)
    return folder / "tests" / "cxx_tests"


@pytest.mark.parametrize("name", NAMES)
def test_cxx(program: Path, name: str) -> None:
    emulator = shlex.split(os.environ.get("SOFTNEURO_EMULATOR", ""))  # for a build of another architecture
    done = subprocess.run([*emulator, str(program), name], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
