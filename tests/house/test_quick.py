"""What `make quick` runs for a change, how durations are kept, and that tests come in their order."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


quick, durations = script("quick"), script("durations")


@pytest.mark.parametrize(
    ("path", "places", "word"),
    [
        ("csrc/layers/conv2d/winograd.cc", ["tests/layers", "tests/house/test_cxx.py"], "conv2d"),
        ("csrc/layers/shared/grid.h", ["tests/layers", "tests/house/test_cxx.py"], "grid"),
        ("csrc/kernels/gemm/generic.h", ["tests/house/test_cxx.py", "tests/layers"], "gemm"),
        ("csrc/tests/gemm_test.cc", ["tests/house/test_cxx.py"], "gemm"),
        ("csrc/tune/search/dprs.cc", ["tests/tune"], "dprs"),
        ("torch_backend/compile/host/host_steps.py", ["tests/torch"], "host_steps"),
        ("providers/ort/run/kernel.cc", ["tests/providers"], "kernel"),
        ("tests/net/test_net.py", ["tests/net/test_net.py"], ""),
        ("tests/net/limited_run.py", ["tests/net"], ""),
        ("docs/testing.md", [], ""),
    ],
)
def test_a_source_has_the_tests_of_its_room(path: str, places: list[str], word: str) -> None:
    assert quick.tests_of(path) == (places, word)


def test_every_room_has_tests_that_exist() -> None:
    places = [place for _, of in quick.TESTS_OF for place in of] + quick.ALWAYS
    assert all((ROOT / place).exists() for place in places)


def test_what_takes_long_is_left_out_first() -> None:
    known = {"a.py": {"tests": 2, "all": 20.0}, "b.py": {"tests": 10, "all": 1.0}}
    chosen, left_out = quick.choose(["a.py::x", "new.py::z", "b.py::y"], known, 3.0)
    assert chosen == ["b.py::y", "new.py::z"]
    assert left_out == ["a.py::x"]


def test_durations_are_read_from_a_report(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").touch()
    report = tmp_path / "report.xml"
    cases = [("tests.test_one", 1.5), ("tests.test_one.TestClass", 0.25), ("tests.test_gone", 3)]
    lines = "".join(f'<testcase classname="{name}" name="t" time="{time}"/>' for name, time in cases)
    report.write_text(f"<testsuites><testsuite>{lines}</testsuite></testsuites>")
    assert durations.read([report], tmp_path) == {"tests/test_one.py": {"tests": 2, "all": 1.8, "longest": 1.5}}


def conftest() -> ModuleType:
    spec = importlib.util.spec_from_file_location("order_of_tests", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kept", "order"),
    [
        (
            {"tests/long.py": {"longest": 9}, "tests/short.py": {"longest": 1}},
            ["new::a", "long::a", "long::b", "short::a"],
        ),
        ({"tests/gone.py": {"longest": 9}}, ["short::a", "long::a", "long::b", "new::a"]),
        ("no table", ["short::a", "long::a", "long::b", "new::a"]),
        ({"tests/long.py": {"longest": None}}, ["short::a", "long::a", "long::b", "new::a"]),
    ],
)
def test_the_longest_files_come_first_and_a_stale_record_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: object, order: list[str]
) -> None:
    module = conftest()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "durations.json").write_text(json.dumps(kept))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.delenv("SOFTNEURO_SHORTEST_FIRST", raising=False)
    names = ["short::a", "long::a", "long::b", "new::a"]
    items = [SimpleNamespace(nodeid="tests/" + name.replace("::", ".py::")) for name in names]
    module.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["tests/" + name.replace("::", ".py::") for name in order]
