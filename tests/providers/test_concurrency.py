"""concurrency.cc, compiled and run against the installed runtime.

`make sanitize` runs it with a library of its own (SOFTNEURO_ORT_LIBRARY), both built for a thread sanitizer (CXXFLAGS).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import onnxruntime
import pytest

from softneuro import providers
from tests.providers.test_sessions import network

HERE = Path(__file__).parent
# What is not built for it: the runtime, whose locks are then not seen either, and in the kernels and layers the counts
# of shared pointers.
SUPPRESSED = ["called_from_lib:libonnxruntime.so", "race_top:libonnxruntime.so", "race:std::_Sp_counted_base"]
TSAN = "halt_on_error=1:report_mutex_bugs=0:suppressions="


def test_threads_without_python(tmp_path: Path, own_database: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    flags = [*shlex.split(os.environ.get("CXXFLAGS", "-O1")), "-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread"]
    program, model, suppressions = tmp_path / "concurrency", tmp_path / "model.onnx", tmp_path / "suppressions"
    source = [str(HERE / "concurrency.cc"), f"-I{HERE.parents[1]}", f"-I{HERE.parents[1] / 'csrc'}", "-ldl"]
    subprocess.run([*shlex.split(compiler), *flags, *source, "-o", str(program)], check=True)
    model.write_bytes(network())
    suppressions.write_text("\n".join(SUPPRESSED))
    runtime = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))
    library = os.environ.get("SOFTNEURO_ORT_LIBRARY") or providers.get_library_path()
    done = subprocess.run(
        [str(program), str(runtime), library, str(model)],
        env={**os.environ, "TSAN_OPTIONS": f"{TSAN}{suppressions}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[:8000]
    assert done.stdout == "right\n"
