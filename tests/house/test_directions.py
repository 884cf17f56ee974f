"""Who may include and import whom."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Each may include itself and what is before it.
CORE = ["base", "simd", "kernels", "layers", "graph", "net", "tune", "runtime"]
ISA_FILE = re.compile(r"_(avx2|avxvnni|avx512|avx512vnni|amx|neon)\.(cc|h)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
INTRINSICS = re.compile(r"^(immintrin|x86intrin|arm_neon|[a-z]mmintrin)\.h$")
ABI = re.compile(r"onnxruntime|(^|/)providers/ort/abi/abi\.h$")


def sources(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".cc", ".h", ".inc", ".hpp", ".cpp"}
    )


def includes(path: Path) -> list[str]:
    return [match[1] for match in INCLUDE.findall(path.read_text())]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_core_rooms_include_downwards_only() -> None:
    wrong = []
    for room in CORE:
        allowed = CORE[: CORE.index(room) + 1]
        for path in sources(f"csrc/{room}"):
            for name in includes(path):
                target = name.split("/", maxsplit=1)[0]
                outside = target in {"ext", "torch_backend", "providers", "tests"} or target.startswith("..")
                if outside or (target in CORE and target not in allowed):
                    wrong.append(f"{relative(path)} includes {name}")
    assert not wrong, "\n".join(wrong)


TORCH = re.compile(r"(torch|ATen|c10)/")
STABLE_TORCH = re.compile(r"torch/(csrc/stable|csrc/inductor/aoti_torch/c)/")
# It takes no more from the others than where things are.
TORCH_FIELDS = "torch_backend/native/ops/tensor_fields.cc"
# Torch's Python module, beside ops that know no Python.
PYTHON_ROOM = re.compile(r"ext/bindings/|torch_backend/native/[^/]+$")


def test_foreign_headers_stay_in_their_room() -> None:
    wrong = []
    for path in sources("csrc", "ext", "torch_backend", "providers"):
        name = relative(path)
        for header in includes(path):
            intrinsics = INTRINSICS.match(header) and not (name.startswith("csrc/simd/") or ISA_FILE.search(name))
            pybind = header.startswith(("pybind11/", "Python.h")) and not PYTHON_ROOM.match(name)
            stable = STABLE_TORCH.match(header) and name.startswith("torch_backend/native/ops/")
            torch = TORCH.match(header) and not stable and name != TORCH_FIELDS
            abi = ABI.search(header) and not name.startswith("providers/ort/")
            if intrinsics or pybind or torch or abi:
                wrong.append(f"{name} includes {header}")
    assert not wrong, "\n".join(wrong)


def test_one_module_asks_torch_about_tensors() -> None:
    """Whether weights are alive, the same, unwritten, where they were. The others ask which tensors share memory."""
    asks = re.compile(r"data_ptr\(|\.data_ptr\b|\b_version\b|\b_cdata\b|\bTensorWatch\(|tensor_fields\(")
    found = {relative(path) for path in (ROOT / "torch_backend").rglob("*.py") if asks.search(path.read_text())}
    sharing = {"torch_backend/compile/tracing/overlaps.py", "torch_backend/call/runtime.py"}
    assert found == {"torch_backend/freshness/tensors.py", *sharing}


def test_doors_do_not_include_each_other() -> None:
    doors = {"ext": "ext/bindings", "torch_backend": "torch_backend", "providers": "providers/ort"}
    wrong = [
        f"{relative(path)} includes {header}"
        for door, folder in doors.items()
        for path in sources(folder)
        for header in includes(path)
        if header.split("/", maxsplit=1)[0] in doors.keys() - {door}
    ]
    assert not wrong, "\n".join(wrong)


def imported_modules(path: Path) -> list[str]:
    """Modules that a file imports anywhere, relative ones refused."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_python_imports_follow_the_plan() -> None:
    forbidden = {
        "ext": ["torch", "onnx", "onnxruntime", "softneuro.torch_backend", "softneuro.providers"],
        "torch_backend": ["onnx", "onnxruntime", "softneuro.providers"],
        "providers": ["torch", "softneuro.torch_backend"],
    }
    wrong = [
        f"{relative(path)} imports {module}"
        for folder, names in forbidden.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        for module in imported_modules(path)
        if any(module == name or module.startswith(name + ".") for name in names)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_imported_by_its_folder_name() -> None:
    """`import ext` would load a second copy of the package."""
    folders = ("ext", "torch_backend", "providers")
    wrong = [
        f"{relative(path)} imports {module}"
        for folder in (*folders, "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for module in imported_modules(path)
        if module.split(".")[0] in folders
    ]
    assert not wrong, "\n".join(wrong)


def test_routine_lists_have_one_reader_each() -> None:
    """routines.inc is read by its own layer, layers.inc by the registry."""
    wrong = []
    for path in sources("csrc", "ext", "torch_backend", "providers"):
        for header in includes(path):
            if header.endswith("layers.inc") and relative(path) != "csrc/layers/contract/registry.cc":
                wrong.append(f"{relative(path)} includes {header}")
    assert not wrong, "\n".join(wrong)
