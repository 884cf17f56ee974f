"""Builds the C++ part with CMake and ninja; everything static is in pyproject.toml.

Environment variables:
    SOFTNEURO_TORCH      1: torch ops are required; 0: they are not built; unset: a torch that the environment has is
                         used, otherwise an isolated build fetches one.
    SOFTNEURO_BUILD_DIR  where CMake works and keeps its objects between builds.
    SOFTNEURO_WERROR     1: warnings are errors.
    SOFTNEURO_JOBS       compilers that run at once; default one per core.
    CMAKE_ARGS           further arguments for CMake's configuration.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()
TORCH_REQUIREMENT = "torch==2.13.0"
OLDEST_TORCH = (2, 11)
PACKAGE_DIR = {"softneuro": "ext", "softneuro.torch_backend": "torch_backend", "softneuro.providers": "providers"}
# Folder in the package -> libraries there.
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
LIBRARIES = {
    ".": (f"_C{SUFFIX}", "libsoftneuro.so", "_ops.so"),
    "torch_backend": (f"_native{SUFFIX}",),
    "providers": ("libsoftneuro_ort.so",),
}


def torch_version(folder: Path) -> tuple[int, ...]:
    """(major, minor) of the torch package in a folder, () if there is none."""
    try:
        found = re.search(r"__version__ = '(\d+)\.(\d+)", (folder / "version.py").read_text())
    except OSError:
        return ()
    return tuple(map(int, found.groups())) if found else ()


def find_torch() -> Path | None:
    """Folder of a torch to build against: the build environment's, else the one of the environment to install into.

    Only its headers and libtorch_cpu.so are used, so it need not be importable: an isolated build has the interpreter
    of the target environment but does not see its packages.
    """
    if os.environ.get("SOFTNEURO_TORCH") == "0":
        return None
    spec = importlib.util.find_spec("torch")
    candidates = [Path(spec.origin).parent] if spec and spec.origin else []
    candidates += [Path(sysconfig.get_path(kind)) / "torch" for kind in ("platlib", "purelib")]
    usable = [c for c in candidates if torch_version(c) >= OLDEST_TORCH and (c / "include" / "torch").is_dir()]
    return usable[0] if usable else None


def tool(name: str) -> str:
    """Path of cmake or ninja: the one from PyPI if installed, else the system's."""
    if importlib.util.find_spec(name):
        module = importlib.import_module(name)
        folder = getattr(module, "CMAKE_BIN_DIR", None) or module.BIN_DIR
        if found := shutil.which(name, path=folder):
            return found
    if found := shutil.which(name):
        return found
    raise SystemExit(f"building softneuro needs {name}: pip install {name}")


class CMakeBuild(build_ext):
    """Runs CMake into a kept build folder and copies the libraries to where setuptools wants them."""

    def run(self) -> None:
        source = Path("build") / f"cmake-{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
        work = Path(os.environ.get("SOFTNEURO_BUILD_DIR") or ROOT / source).resolve()
        self.cmake(work)
        if not self.inplace:
            for stale in (Path(self.build_lib) / "softneuro").rglob("*.so"):  # setuptools keeps build_lib
                stale.unlink()
        for folder, names in LIBRARIES.items():
            target = self.target(folder)
            target.mkdir(parents=True, exist_ok=True)
            for library in (work / "lib" / name for name in names):
                if library.exists():
                    replacement = target / (library.name + ".new")
                    shutil.copy2(library, replacement)
                    # Never written in place: a running process may have it mapped.
                    replacement.replace(target / library.name)

    def target(self, folder: str) -> Path:
        """Where a folder of the package is made."""
        package = ".".join(("softneuro", *Path(folder).parts))
        if self.inplace:
            return Path(self.get_finalized_command("build_py").get_package_dir(package))
        return Path(self.build_lib, *package.split("."))

    def cmake(self, work: Path) -> None:
        import pybind11

        torch = find_torch()
        if torch is None:
            if os.environ.get("SOFTNEURO_TORCH") == "1":
                raise SystemExit(f"SOFTNEURO_TORCH=1, but no torch >= {'.'.join(map(str, OLDEST_TORCH))} was found")
            print("softneuro: no torch found, building without the torch ops", file=sys.stderr)
            (work / "lib" / "_ops.so").unlink(missing_ok=True)
        arguments = [
            f"-DSOFTNEURO_VERSION={self.distribution.get_version()}",
            f"-DSOFTNEURO_WERROR={int(os.environ.get('SOFTNEURO_WERROR') == '1')}",
            f"-DSOFTNEURO_TORCH_DIR={torch or ''}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
            "-GNinja",
            f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        ]
        if ccache := shutil.which("ccache"):
            # ccache would take every precompiled header for another.
            arguments += [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}", "-DSOFTNEURO_PCH=OFF"]
        arguments += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        work.mkdir(parents=True, exist_ok=True)
        jobs = os.environ.get("SOFTNEURO_JOBS") or str(os.cpu_count() or 1)
        # With ccache, two checkouts of one source share their objects.
        environment = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", **os.environ}
        subprocess.run([tool("cmake"), "-S", str(ROOT / "csrc"), "-B", str(work), *arguments], check=True)
        subprocess.run([tool("cmake"), "--build", str(work), "--parallel", jobs], check=True, env=environment)

    def get_outputs(self) -> list[str]:
        folder = Path(self.build_lib) / "softneuro"
        return [] if self.inplace else [str(path) for path in sorted(folder.rglob("*.so"))]

    def get_output_mapping(self) -> dict[str, str]:
        return {}


setup(
    packages=[
        *PACKAGE_DIR,
        *(f"{name}.{sub}" for name, folder in PACKAGE_DIR.items() for sub in find_packages(folder)),
    ],
    package_dir=PACKAGE_DIR,
    ext_modules=[Extension("softneuro._C", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    # Makes `pip install .` in an empty environment yield a package with the torch ops.
    setup_requires=[] if find_torch() or os.environ.get("SOFTNEURO_TORCH") == "0" else [TORCH_REQUIREMENT],
)
