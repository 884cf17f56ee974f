"""A compiler launcher that copies an object from this checkout's build instead of making it again.

Tests build copies of the project, whose objects are the same but for a few. One is copied if this build's command for
it is the same but for the folders, and the project's files that went into it (as ninja recorded them) are the same to
the byte; anything else is compiled.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOMS = ("csrc", "ext", "torch_backend", "providers")


def plain(arguments: list[str], root: str, build: str) -> list[str]:
    """A command without what may differ: the folders, the launcher before the compiler, where pybind11 is."""
    while len(arguments) > 1 and not arguments[1].startswith("-"):
        arguments = arguments[1:]
    names = ((build, "BUILD"), (root, "ROOT"), (root.lstrip("/"), "ROOT"))
    text = "\n".join(arguments)
    for folder, name in names:
        text = text.replace(folder, name)
    return re.sub(r"\S*/pybind11/include", "PYBIND11", text).split("\n")


def same_files(object_name: str, root: Path, build: Path, other_root: Path, ninja: str) -> bool:
    """Whether the project's files that an object was made of are the same in both checkouts."""
    deps = [ninja, "-C", str(build), "-t", "deps", object_name]
    listing = subprocess.run(deps, capture_output=True, text=True, check=True)
    files = [Path(os.path.normpath(build / line.strip())) for line in listing.stdout.splitlines()[1:] if line.strip()]
    own = [path.relative_to(root) for path in files if path.is_relative_to(root)]
    own = [path for path in own if path.parts[0] in ROOMS]
    return bool(own) and all(
        (other_root / path).exists() and (other_root / path).read_bytes() == (root / path).read_bytes() for path in own
    )


def same_source(source: Path, root: Path, build: Path, other_root: str, other_build: str) -> bool:
    """Whether a source is the same where the build wrote it: a list of files to compile together."""
    if not source.is_relative_to(other_build):
        return True
    twin = build / source.relative_to(other_build)
    return twin.exists() and twin.read_text().replace(str(root), "") == source.read_text().replace(other_root, "")


def reuse(root: Path, build: Path, ninja: str, command: list[str]) -> bool:
    """Copies the object that a command would make, if it may."""
    include = next((argument for argument in command if re.fullmatch(r"-I.*/csrc(/\.\.)?", argument)), None)
    if include is None or "-o" not in command:
        return False
    target = Path(command[command.index("-o") + 1])
    if target.suffix != ".o" or "version.cc" in target.name:
        return False
    other_root, other_build = include[2:].removesuffix("/..").removesuffix("/csrc"), str(Path.cwd())
    wanted = plain(command, other_root, other_build)
    name = str(target).replace(other_root.lstrip("/"), str(root).lstrip("/"))
    entries = json.loads((build / "compile_commands.json").read_text())
    entry = next((entry for entry in entries if entry.get("output", "").endswith(name)), None)
    if entry is None or not (build / name).exists():
        return False
    known = plain(shlex.split(entry["command"]), str(root), str(build))
    # ninja adds what it needs to record dependencies; compile_commands.json is without it.
    wanted = re.sub(r"\n-MD\n-MT\n\S+\n-MF\n\S+", "", "\n".join(wanted)).split("\n")
    if wanted != known or not same_files(name, root, build, Path(other_root), ninja):
        return False
    if not same_source(Path(command[command.index("-c") + 1]), root, build, other_root, other_build):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(build / name, target)
    return True


def main() -> None:
    root, build, ninja, *command = sys.argv[1:]
    if not reuse(Path(root), Path(build), ninja, command):
        os.execvp(command[0], command)


if __name__ == "__main__":
    main()
