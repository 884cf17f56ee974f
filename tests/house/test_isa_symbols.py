"""What an ISA object may define: names of its own namespace and its entry points `softneuro::<name>_<isa>`.

Nothing else, in particular nothing that another object could share.

An inline function compiled with AVX-512 flags, merged by the linker with the same function compiled without, crashes
older CPUs.
"""

import re
import subprocess
from pathlib import Path

from tests.house.build_folder import build_folder

ISAS = ("scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon")


def isa_objects() -> list[tuple[str, Path]]:
    objects = (build_folder() / "CMakeFiles" / "core_hot.dir").rglob("*.cc.o")
    found = ((re.search(rf"_({'|'.join(ISAS)})\.cc\.o$", path.name), path) for path in objects)
    return sorted((match[1], path) for match, path in found if match)


def defined_symbols(paths: list[Path]) -> list[tuple[str, str, str]]:
    """(path, kind, demangled name) of everything with external linkage."""
    listing = subprocess.run(
        ["nm", "-A", "-C", "--defined-only", "--extern-only", "--format=posix", *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    matches = (re.match(r"(\S+?): (.+) ([A-Za-z]) [0-9a-f]* ?[0-9a-f]*$", line) for line in listing.splitlines())
    return [(match[1], match[3], match[2]) for match in matches if match]


def own_name(isa: str, name: str) -> bool:
    return bool(re.match(rf"([^(]* )?softneuro::{isa}::", name))


def entry_point(isa: str, kind: str, name: str) -> bool:
    """Weak symbols are what linkers merge, so an entry point must be a strong one."""
    return kind not in "WVu" and bool(re.match(rf"softneuro::\w+_{isa}(\(|$)", name))


def test_isa_objects_keep_to_their_namespace() -> None:
    objects = {str(path): isa for isa, path in isa_objects()}
    symbols = defined_symbols([Path(path) for path in objects])
    assert {path for path, _, _ in symbols} == set(objects)
    harmless = re.compile(r"DW\.ref\.")  # a pointer that the exception tables need; data, not code
    strangers = [
        f"{Path(path).name}: {kind} {name}"
        for path, kind, name in symbols
        if not harmless.match(name) and not (own_name(objects[path], name) or entry_point(objects[path], kind, name))
    ]
    assert not strangers, "defined outside softneuro::<isa>:\n" + "\n".join(strangers)


def test_isa_namespaces_are_hidden() -> None:
    library = build_folder() / "lib" / "libsoftneuro.so"
    exported = subprocess.run(["nm", "-DC", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    lines = exported.stdout.splitlines()
    assert lines
    outside = [line for line in lines if "softneuro" not in line]
    assert not outside, "exported but not of softneuro:\n" + "\n".join(outside)
    isa = re.compile(rf"^[0-9a-f]* [A-Za-z] softneuro::({'|'.join(ISAS)})::")
    shown = [line for line in lines if isa.match(line)]
    assert not shown, "ISA code is exported:\n" + "\n".join(shown)
