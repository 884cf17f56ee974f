"""Lint of what was changed, and the tests of it that fit into a minute and a half: `make quick`.

Changed is what differs from where this branch left main (on main: from the commit before), staged or not. A source
belongs to the tests of its room, and there to those that its name is part of; where none is, to all of them. Tests of
files that take long come last. What was left out is said.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 90  # seconds
UNKNOWN = 1.0  # seconds that a test of an unknown file is taken for
WORKERS = 2
# These tests look at all files, whatever was changed.
ALWAYS = [f"tests/house/test_{name}.py" for name in ("directions", "docs", "names", "sizes")]
# Beginning of a path -> where its tests are. The first that fits counts.
TESTS_OF = (
    ("csrc/kernels/", ["tests/house/test_cxx.py", "tests/layers"]),
    ("csrc/layers/", ["tests/layers", "tests/house/test_cxx.py"]),
    ("csrc/graph/", ["tests/graph"]),
    ("csrc/net/", ["tests/net"]),
    ("csrc/tune/", ["tests/tune"]),
    ("csrc/runtime/", ["tests/torch", "tests/providers", "tests/house/test_cxx.py"]),
    ("csrc/", ["tests/house/test_cxx.py"]),
    ("torch_backend/", ["tests/torch"]),
    ("providers/", ["tests/providers"]),
    ("ext/", ["tests/graph", "tests/net"]),
    ("benchmarks/", ["tests/house"]),
    (".ci/", ["tests/house"]),
)


def git(*arguments: str) -> list[str]:
    """Lines that git prints, none where it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files() -> list[str]:
    """Paths that exist, from the root."""
    head, base = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "main")
    since = base[0] if base and base != head else "HEAD~1"
    names = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
    return sorted({name for name in names if (ROOT / name).is_file()})


def word_of(path: str) -> str:
    """What the names of a source's tests have in common: the layer type's, the kernel's, else the file's name."""
    parts = Path(path).parts
    folder = parts[2] if parts[:2] in (("csrc", "layers"), ("csrc", "kernels")) and len(parts) > 3 else ""
    if parts[1] == "layers" and not (ROOT / "csrc" / "layers" / folder / "routines.inc").exists():
        folder = ""  # it holds what several types share
    return folder or re.sub(r"^test_|_test$", "", Path(path).stem)


def tests_of(path: str) -> tuple[list[str], str]:
    """Where the tests of a changed file are, and the word of those that are its own; no word: all."""
    parts = Path(path).parts
    if parts[0] == "tests":
        own = Path(path).name.startswith("test_") and path.endswith(".py")
        return [path if own else str(Path(path).parent)], ""
    for begin, places in TESTS_OF:
        if path.startswith(begin):
            return places, word_of(path)
    return [], ""


def choose(tests: list[str], durations: dict[str, dict[str, float]], seconds: float) -> tuple[list[str], list[str]]:
    """The tests that fit into so many seconds, shortest first, and the others."""

    def takes(test: str) -> float:
        of = durations.get(test.partition("::")[0])
        return of["all"] / max(of["tests"], 1) if of else UNKNOWN

    chosen, left_out, spent = [], [], 0.0
    for test in sorted(tests, key=takes):
        spent += takes(test) / WORKERS
        (chosen if spent <= seconds else left_out).append(test)
    return chosen, left_out


def collect(places: list[str], words: list[str]) -> list[str]:
    """Names of tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow", *places]
    listing = subprocess.run(
        [*command, *(["-k", " or ".join(words)] if words else [])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in listing.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", "SKIPPED"))]


def tests_for(changed: list[str]) -> list[str]:
    """Names of the tests of all changed files."""
    words: dict[tuple[str, ...], set[str]] = {tuple(ALWAYS): {""}}
    for path in changed:
        places, word = tests_of(path)
        if places:
            words.setdefault(tuple(places), set()).add(word)
    found: dict[str, None] = {}
    for places, of in words.items():
        tests = collect(list(places), [] if "" in of else sorted(of))
        found |= dict.fromkeys(tests or collect(list(places), []))
    return list(found)


def lint(changed: list[str]) -> bool:
    """Whether style is as it should be; prints what is not."""
    python = [name for name in changed if name.endswith((".py", ".pyi"))]
    cxx = [name for name in changed if name.endswith((".cc", ".h"))]
    commands = []
    if python:
        commands += [
            [sys.executable, "-m", "ruff", *check, *python] for check in (["check", "-q"], ["format", "--check"])
        ]
    if cxx:
        commands.append([str(Path(sys.executable).parent / "clang-format"), "--dry-run", "--Werror", *cxx])
    return not sum(subprocess.run(command, cwd=ROOT, check=False).returncode != 0 for command in commands)


def main() -> int:
    """0: all is well, as far as it was looked at."""
    begin = time.monotonic()
    changed = changed_files()
    clean = lint(changed)
    kept = ROOT / "tests" / "durations.json"
    durations = json.loads(kept.read_text()) if kept.exists() else {}
    tests = tests_for(changed)
    chosen, left_out = choose(tests, durations, LIMIT - 10 - (time.monotonic() - begin))
    print(f"{len(changed)} files changed; {len(chosen)} of their {len(tests)} tests run", flush=True)
    for name, count in Counter(test.split("::")[0] for test in left_out).most_common():
        print(f"  left out: {count} of {name}")
    (ROOT / "build").mkdir(exist_ok=True)
    listing = ROOT / "build" / "quick.txt"
    listing.write_text("\n".join(chosen) + "\n")
    # It ends at the first failure: what the time limit stops has had none.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        str(WORKERS),
        "--max-worker-restart",
        "0",
        f"@{listing}",
    ]
    running = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "SOFTNEURO_SHORTEST_FIRST": "1"})
    try:
        done = running.wait(max(10.0, LIMIT - (time.monotonic() - begin)))
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
        running.wait()
        print(f"stopped after {LIMIT} s: what comes last was not run")
        done = 0
    return int(done != 0 or not clean)


if __name__ == "__main__":
    sys.exit(main())
