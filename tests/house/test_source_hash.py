"""Which sources the records of a routine depend on: csrc/source_hash.cmake, alone on a small tree and on this one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import softneuro
from tests.house.build_folder import ROOT, build_folder, cmake

SCRIPT = ROOT / "csrc" / "source_hash.cmake"
TREE = {
    "simd/simd.h": "",
    "kernels/levels.h": "",
    "kernels/a/a.h": '#include "kernels/levels.h"\n',
    "kernels/a/a.cc": '#include "kernels/a/a.h"\n',
    "kernels/a/generic.h": '#include "simd/simd.h"\n',
    "kernels/b/b.h": "",
    "kernels/b/b.cc": "",
    "layers/contract/routine.h": "class RoutineList;\n",
    "layers/shared.h": '#include "layers/contract/routine.h"\n',
    "layers/shared.cc": '#include "layers/shared.h"\n#include "kernels/b/b.h"\n',
    "layers/contract/naive.cc": "",
    "layers/conv/conv.cc": '#include "layers/contract/routine.h"\n',
    "layers/conv/reference.cc": "",
    "layers/conv/one.cc": '#include "kernels/a/a.h"\n#include "layers/contract/routine.h"\n'
    "void conv_one(RoutineList& list) { list.add<One>(); }\n",
    "layers/conv/two.cc": '#include "layers/shared.h"\nvoid conv_two(RoutineList& list) {\n  list.add<Two>();\n}\n',
    "layers/conv/around.cc": "void conv_around(RoutineList& list) {\n  RoutineList inner;\n  conv_one(inner);\n}\n",
    "layers/conv/routines.inc": "SN_ROUTINE(conv_one)\nSN_ROUTINE(conv_two)\nSN_ROUTINE(conv_around)\n",
    "base/team.cc": "",
    "tune/measure/profiler.cc": "",
}
ALL = {"conv_one", "conv_two", "conv_around", "conv_naive"}


def run(tree: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [cmake(), f"-DROOT={tree}", "-DVERSION=1", f"-DOUT={out}", *options, "-P", str(SCRIPT)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def hashes(tree: Path) -> dict[str, str]:
    done = run(tree, tree / "version.cc")
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r'\{"(\w+)", "([0-9a-f]{16})"\}', (tree / "version.cc").read_text()))


def made_up(folder: Path) -> Path:
    for name, text in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_an_edit_changes_what_it_touches(tmp_path: Path) -> None:
    tree = made_up(tmp_path)
    before = hashes(tree)
    assert before.keys() == ALL
    assert len(set(before.values())) == len(ALL)
    for edited, touched in {
        "kernels/a/generic.h": {"conv_one", "conv_around"},
        "simd/simd.h": {"conv_one", "conv_around"},
        "kernels/b/b.cc": {"conv_two"},
        "layers/shared.cc": {"conv_two"},
        "layers/conv/one.cc": {"conv_one", "conv_around"},
        "layers/conv/reference.cc": {"conv_naive"},
        "layers/contract/routine.h": set(),  # a contract
        "tune/measure/profiler.cc": ALL,
    }.items():
        (tree / edited).write_text(TREE[edited] + "// changed\n")
        after = hashes(tree)
        assert {name for name in ALL if after[name] != before[name]} == touched, edited
        (tree / edited).write_text(TREE[edited])


def test_a_routine_that_nobody_defines_is_told(tmp_path: Path) -> None:
    tree = made_up(tmp_path)
    with (tree / "layers/conv/routines.inc").open("a") as routines:
        routines.write("SN_ROUTINE(conv_three)\n")
    assert "conv_three" in run(tree, tree / "version.cc").stderr


def test_every_routine_has_a_hash() -> None:
    entries = softneuro.registry()
    assert all(re.fullmatch(r"[0-9a-f]{16,32}", entry["source_hash"]) for entry in entries)
    assert len({entry["source_hash"] for entry in entries}) > len(entries) / 20


def node(source: str) -> str:
    """All of a kernel's folder counts as one."""
    return re.sub(r"^(kernels/[^/]+)/.*", r"\1", source)


def links() -> dict[str, set[str]]:
    """By source file, the other files whose functions its object calls."""
    wants: dict[str, set[str]] = {}
    has: dict[str, str] = {}
    for part in ("core_hot", "core_cool"):
        folder = build_folder() / "CMakeFiles" / f"{part}.dir"
        objects = [path for room in ("layers", "kernels") for path in (folder / room).rglob("*.cc.o")]
        if not objects:
            continue
        listing = subprocess.run(["nm", "-A", "-P", *map(str, objects)], capture_output=True, text=True, check=True)
        for line in listing.stdout.splitlines():
            place, symbol, kind = line.split()[:3]
            source = place.removeprefix(f"{folder}/").rstrip(":").removesuffix(".o")
            # A layer type's own file lists all its routines. References say what is right, never how fast.
            listed = Path(source).stem == Path(source).parent.name and "RoutineList" in symbol
            if kind in "TDBR":
                has[symbol] = source
            elif kind == "U" and not listed and "_reference" not in symbol:
                wants.setdefault(source, set()).add(symbol)
    return {source: {has[symbol] for symbol in symbols if symbol in has} for source, symbols in wants.items()}


def test_what_a_routine_is_linked_with_counts(tmp_path: Path) -> None:
    """Includes lead to all that a routine calls: a function's definition stands beside its header."""
    assert run(ROOT / "csrc", tmp_path / "version.cc", f"-DREACH={tmp_path / 'reach'}").returncode == 0
    contracts = re.findall(r"([\w/]+)\.h", SCRIPT.read_text().partition("set(contracts")[2].partition(")")[0])
    leave_out = {f"layers/{name}.cc" for name in contracts}
    calls = {source: others - leave_out for source, others in links().items()}
    missing = set()
    for line in (tmp_path / "reach").read_text().splitlines():
        function, _, nodes = line.partition(" ")
        reached = set(nodes.split(";"))
        for source, others in calls.items() if not function.endswith("_naive") else ():
            if node(source) in reached:
                missing |= {f"{source} calls {other}" for other in others if node(other) not in reached}
    assert not missing, "put these definitions beside their headers:\n" + "\n".join(sorted(missing))
