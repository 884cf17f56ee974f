"""Scripts in processes of their own, forked from one that has imported what they need."""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
LONGEST_S = 120


class Scripts:
    """Runs one script after the other; each finds the library unloaded and the environment as it asks for."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from tests.providers import scripts; scripts.serve()"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """What the script has written, and how it has ended: below zero, by a signal."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"{folder}/out", f"{folder}/err"]
            print(json.dumps([script, environment, paths]), file=self._server.stdin, flush=True)
            code = int(self._server.stdout.readline())
            return subprocess.CompletedProcess([], code, *(Path(path).read_text() for path in paths))

    def close(self) -> None:
        """Ends the process that the others are made from."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


@functools.cache
def _scripts() -> Scripts:
    scripts = Scripts()
    atexit.register(scripts.close)
    return scripts


def run_script(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which must not be killed by a signal."""
    prepared = f"from tests.providers.test_bad_input import *\nimport numpy as np\n{script}"
    cache = {"SOFTNEURO_CACHE_DIR": os.environ["SOFTNEURO_CACHE_DIR"]}  # the test's
    done = _scripts().run(prepared, {**cache, **environment})
    assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr[-2000:]}"
    return done


def serve() -> None:
    """Forks for each line of the input, and writes how the fork has ended."""
    # ONNX Runtime has threads as soon as it is imported, which a fork would not have.
    for name in ("numpy", "onnx.helper", "onnx.numpy_helper", "onnx.shape_inference", "pytest"):
        importlib.import_module(name)
    for line in sys.stdin:
        script, environment, paths = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(script, environment, paths)
        killer = threading.Timer(LONGEST_S, os.kill, (child, 9))
        killer.start()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        killer.cancel()
        killer.join()
        print(code, flush=True)


def _run(script: str, environment: dict[str, str], paths: list[str]) -> NoReturn:
    for stream, path in enumerate(paths, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.environ.update(environment)
    names: dict[str, Any] = {"__name__": "__main__"}
    code = 0
    try:
        exec(compile(script, "<script>", "exec"), names)
        names.clear()
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.exit(code)
