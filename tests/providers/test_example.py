"""docs/example.cc, compiled and run against the installed runtime.

Its C header is in no package, so one is made here with the functions that the example uses, at their places.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from softneuro import providers
from tests.providers.conftest import cpu_session
from tests.providers.test_sessions import network

EXAMPLE = Path(__file__).parents[2] / "docs" / "example.cc"
OBJECTS = ["Status", "Env", "EpDevice", "SessionOptions", "Session", "RunOptions", "Value", "MemoryInfo"]
OBJECTS += ["TensorTypeAndShapeInfo"]
FUNCTIONS = {  # slot -> declaration
    2: "const char* (*GetErrorMessage)(const OrtStatus*)",
    3: "OrtStatus* (*CreateEnv)(OrtLoggingLevel, const char*, OrtEnv**)",
    7: "OrtStatus* (*CreateSession)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**)",
    9: "OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t, "
    "const char* const*, size_t, OrtValue**)",
    10: "OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**)",
    49: "OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t, "
    "ONNXTensorElementDataType, OrtValue**)",
    51: "OrtStatus* (*GetTensorMutableData)(OrtValue*, void**)",
    64: "OrtStatus* (*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo*, size_t*)",
    65: "OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**)",
    69: "OrtStatus* (*CreateCpuMemoryInfo)(OrtAllocatorType, OrtMemType, OrtMemoryInfo**)",
    92: "void (*ReleaseEnv)(OrtEnv*)",
    93: "void (*ReleaseStatus)(OrtStatus*)",
    94: "void (*ReleaseMemoryInfo)(OrtMemoryInfo*)",
    95: "void (*ReleaseSession)(OrtSession*)",
    96: "void (*ReleaseValue)(OrtValue*)",
    99: "void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*)",
    100: "void (*ReleaseSessionOptions)(OrtSessionOptions*)",
    301: "OrtStatus* (*RegisterExecutionProviderLibrary)(OrtEnv*, const char*, const char*)",
    303: "OrtStatus* (*GetEpDevices)(const OrtEnv*, const OrtEpDevice* const**, size_t*)",
    304: "OrtStatus* (*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions*, OrtEnv*, "
    "const OrtEpDevice* const*, size_t, const char* const*, const char* const*, size_t)",
    312: "const char* (*EpDevice_EpName)(const OrtEpDevice*)",
}


def header() -> str:
    lines = ["#pragma once", "#include <cstddef>", "#include <cstdint>", "#define ORT_API_VERSION 24"]
    lines += [f"struct Ort{name};" for name in OBJECTS]
    lines += [
        "enum OrtLoggingLevel { ORT_LOGGING_LEVEL_WARNING = 2 };",
        "enum OrtAllocatorType { OrtDeviceAllocator = 0 };",
        "enum OrtMemType { OrtMemTypeDefault = 0 };",
        "enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 };",
        "struct OrtApi {",
        *(f"  {FUNCTIONS.get(slot, f'void* unused{slot}')};" for slot in range(max(FUNCTIONS) + 1)),
        "};",
        "struct OrtApiBase { const OrtApi* (*GetApi)(uint32_t); const char* (*GetVersionString)(); };",
        'extern "C" const OrtApiBase* OrtGetApiBase();',
    ]
    return "\n".join(lines) + "\n"


def test_example(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "onnxruntime_c_api.h").write_text(header())
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = next(folder.glob("libonnxruntime.so*"))
    (tmp_path / "model.onnx").write_bytes(network())
    program = str(tmp_path / "example")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", str(EXAMPLE), str(library)]
    subprocess.run([*compiler.split(), *flags, f"-Wl,-rpath,{folder}", "-o", program], check=True)
    # The name that the library gives itself need not be its file's.
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, env=environment)

    done = run(providers.get_library_path(), str(tmp_path / "model.onnx"), "2", "3", "9", "9")
    assert done.returncode == 0, done.stderr
    result = np.array([float(line) for line in done.stdout.split()])
    expected = cpu_session(network()).run(None, {"x": np.ones((2, 3, 9, 9), np.float32)})[0]
    np.testing.assert_allclose(result, expected.ravel(), rtol=1e-4, atol=1e-5)
    failed = run("gone.so", "model.onnx", "1")
    assert failed.returncode == 1
    assert "gone.so" in failed.stderr
