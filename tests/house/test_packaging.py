"""What the wheel and the source archive hold, and that both build."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import softneuro
from tests.house.build_folder import like_this_build

ROOT = Path(__file__).parents[2]
ROOMS = {"ext": "softneuro", "torch_backend": "softneuro/torch_backend", "providers": "softneuro/providers"}


def run(*command: str, cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


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


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("archive")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(folder), cwd=ROOT)
    archive = next(folder.glob("softneuro-*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.mark.slow
def test_source_archive_is_complete(source: Path) -> None:
    rooms = ("csrc", "ext", "torch_backend", "providers", "tests", "benchmarks")
    tracked = run("git", "ls-files", *rooms, cwd=ROOT).splitlines()
    missing = [name for name in tracked if (ROOT / name).exists() and not (source / name).exists()]
    assert not missing, missing


@pytest.mark.slow
def test_wheel_from_the_source_archive(source: Path, tmp_path: Path) -> None:
    """Built in isolation, as `pip install .` does it, the wheel holds the package and nothing else, and works."""
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), ".")
    run(*pip, cwd=source, environment=like_this_build(tmp_path / "cmake"))
    wheel = zipfile.ZipFile(next(tmp_path.glob("softneuro-*.whl")))
    names = set(wheel.namelist())
    expected = {
        f"{package}/{path.relative_to(ROOT / room).as_posix()}"
        for room, package in ROOMS.items()
        for path in (ROOT / room).rglob("*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    assert expected <= names, sorted(expected - names)
    libraries = {"libsoftneuro.so", "_ops.so", "providers/libsoftneuro_ort.so"}
    assert {"softneuro/py.typed"} | {f"softneuro/{library}" for library in libraries} <= names
    for module in ("softneuro/_C.", "softneuro/torch_backend/_native."):
        assert any(name.startswith(module) and name.endswith(".so") for name in names)
    meta = {name for name in names if ".dist-info/" in name}
    assert any(name.endswith("LICENSE") for name in meta)
    entry_points = next(name for name in meta if name.endswith("entry_points.txt"))
    assert b"softneuro.torch_backend:softneuro" in wheel.read(entry_points)
    strangers = {
        name for name in names - meta if not name.startswith("softneuro/") or name.endswith((".cc", ".h", ".inc", ".o"))
    }
    assert not strangers, sorted(strangers)

    wheel.extractall(tmp_path / "site")
    code = "import softneuro, softneuro.torch_backend; print(softneuro.__file__, len(softneuro.registry()))"
    printed = run(sys.executable, "-c", code, cwd=tmp_path, environment={"PYTHONPATH": str(tmp_path / "site")})
    assert printed.startswith(str(tmp_path / "site"))
