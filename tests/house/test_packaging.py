"""What the wheel and the source archive hold, and that both build."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import softneuro
from tests.house.build_folder import build_folder

ROOT = Path(__file__).parents[2]
ROOMS = {"ext": "softneuro", "torch_backend": "softneuro/torch_backend", "providers": "softneuro/providers"}


def run(*command: str, cwd: Path, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def build_wheel(source: Path, target: Path, **environment: str) -> zipfile.ZipFile:
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(target), ".")
    run(*pip, cwd=source, **environment)
    return zipfile.ZipFile(next(target.glob("softneuro-*.whl")))


def test_package_is_loaded_once() -> None:
    """The folders' own names must not be importable copies."""
    assert not {"ext", "torch_backend", "providers"} & set(sys.modules)
    assert Path(softneuro._C.__file__).parent == Path(softneuro.__file__).parent


def test_import_needs_no_host() -> None:
    """Neither torch nor onnxruntime is imported along."""
    code = "import sys, softneuro; sys.exit(bool({'torch', 'onnx', 'onnxruntime'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_torch_is_named() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import softneuro.torch_backend\n"
        "except ImportError as error:\n    sys.exit('pip install' not in str(error))\n"
        "sys.exit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    wheel = build_wheel(ROOT, tmp_path, SOFTNEURO_BUILD_DIR=str(build_folder()))
    names = set(wheel.namelist())
    expected = {
        f"{package}/{path.relative_to(ROOT / room).as_posix()}"
        for room, package in ROOMS.items()
        for path in (ROOT / room).rglob("*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    assert expected <= names, sorted(expected - names)
    assert "softneuro/py.typed" in names
    assert "softneuro/libsoftneuro.so" in names
    assert "softneuro/providers/libsoftneuro_ort.so" in names
    assert any(name.startswith("softneuro/_C.") and name.endswith(".so") for name in names)
    meta = {name for name in names if ".dist-info/" in name}
    assert any(name.endswith("LICENSE") for name in meta)
    entry_points = next(name for name in meta if name.endswith("entry_points.txt"))
    assert b"softneuro.torch_backend:softneuro" in wheel.read(entry_points)
    strangers = {
        name for name in names - meta if not name.startswith("softneuro/") or name.endswith((".cc", ".h", ".inc", ".o"))
    }
    assert not strangers, sorted(strangers)


@pytest.mark.slow
def test_source_archive_builds(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(tmp_path), cwd=ROOT)
    archive = next(tmp_path.glob("softneuro-*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    rooms = ("csrc", "ext", "torch_backend", "providers", "tests", "benchmarks")
    tracked = subprocess.run(["git", "ls-files", *rooms], cwd=ROOT, capture_output=True, text=True, check=False)
    missing = [name for name in tracked.stdout.splitlines() if (ROOT / name).exists() and not (source / name).exists()]
    assert not missing, missing
    wheel = build_wheel(source, tmp_path / "wheel", SOFTNEURO_BUILD_DIR=str(tmp_path / "cmake"))
    assert "softneuro/libsoftneuro.so" in wheel.namelist()
