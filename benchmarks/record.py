"""benchmarks/RESULTS.md, which the benchmarks write: a section per machine, in it a table per command.

A table takes the place of the one that the same command left on the same machine. How long a benchmark measured does
not make it another command.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from softneuro import cpu_brand, cpu_id

RESULTS = Path(__file__).parent / "RESULTS.md"
LIMIT = 185  # lines of the file; tests/house/test_sizes.py
INTRO = """\
# Recorded figures

Benchmarks write this file: with `--record` they put their table into the section of the machine that they ran on, in
the place of the table of the same command. Each heading has the command, the day, and the commit that was measured; a
`+` behind the commit stands for changes on top of it. Earlier figures are in the history of this file.

Compare ratios, not times: contenders run by turns in one process, but machines differ from hour to hour. The first
lines of `benchmarks/<name>.py` say what its columns mean.
"""
EFFORT = {"--seconds", "--rounds", "--batches", "--runs"}
HEADING = re.compile(r"### `(.+)` \((\d{4}-\d\d-\d\d), (\S+)\)$")


@dataclass
class Table:
    """One command's figures."""

    command: str
    date: str
    commit: str
    lines: list[str]  # of the table

    def text(self) -> str:
        return "\n".join([f"### `{self.command}` ({self.date}, {self.commit})", "", *self.lines, ""])


@dataclass
class Machine:
    """A section of the file."""

    name: str
    tables: list[Table] = field(default_factory=list)


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", action="store_true", help="put the figures into benchmarks/RESULTS.md")


def machine_name() -> str:
    """The CPU as it calls itself, with its family and model, which tell guests of equal names apart."""
    return f"{cpu_brand()} ({'-'.join(cpu_id().split('-')[:3])})"


def command_line(benchmark: str, arguments: Sequence[str]) -> str:
    """What repeats the run."""
    level = os.environ.get("SOFTNEURO_MAX_ISA")
    words = [*([f"SOFTNEURO_MAX_ISA={level}"] if level else []), "python", "-m", f"benchmarks.{benchmark}"]
    return shlex.join([*words, *_without(arguments, {"--json", "--csv", "--plot"}, {"--record"})])


def identity(command: str) -> list[str]:
    """What two commands that measure the same have in common."""
    return _without(shlex.split(command), EFFORT, set())


def _without(words: Iterable[str], with_value: set[str], flags: set[str]) -> list[str]:
    kept, rest = [], iter(words)
    for word in rest:
        if word in with_value:
            next(rest, None)
        elif word not in flags and word.partition("=")[0] not in with_value:
            kept.append(word)
    return kept


def commit() -> str:
    """The tree that is measured."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=RESULTS.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ":/", f":!{RESULTS.name}")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def parse(text: str) -> list[Machine]:
    """The file's sections. Raises ValueError for what no benchmark has written."""
    machines: list[Machine] = []
    _, mark, sections = text.partition("\n## ")  # what is before them is INTRO
    for line in (mark + sections).splitlines():
        if line.startswith("## "):
            machines.append(Machine(line[3:]))
        elif line.startswith("### "):
            if (found := HEADING.fullmatch(line)) is None:
                raise ValueError(f"RESULTS.md: no command, day and commit in {line!r}")
            machines[-1].tables.append(Table(found[1], found[2], found[3], []))
        elif line.startswith("|") and machines[-1].tables:
            machines[-1].tables[-1].lines.append(line)
        elif line:
            raise ValueError(f"RESULTS.md: {line!r} is neither a heading nor a table")
    return machines


def render(machines: Sequence[Machine]) -> str:
    sections = [[f"## {machine.name}\n", *(table.text() for table in machine.tables)] for machine in machines]
    return "\n".join([INTRO, *(part for section in sections for part in section)])


def put(machines: list[Machine], name: str, table: Table) -> None:
    """Replaces the table of the same command on a machine, or adds it."""
    machine = next((machine for machine in machines if machine.name == name), None)
    if machine is None:
        machines.append(machine := Machine(name))
    for index, known in enumerate(machine.tables):
        if identity(known.command) == identity(table.command):
            machine.tables[index] = table
            return
    machine.tables.append(table)


def rows_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown: the first column is text, the others are figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    if uneven := [row for row in lines if len(row) != len(header)]:
        raise ValueError(f"{uneven[0]} has not a cell for each of {header}")
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in lines]


def write(
    benchmark: str, arguments: Sequence[str], header: Sequence[str], rows: Iterable[Sequence[str]], path: Path = RESULTS
) -> None:
    """Records a benchmark's table, of which `arguments` are those on its command line."""
    machines = parse(path.read_text()) if path.exists() else []
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    put(machines, machine_name(), Table(command_line(benchmark, arguments), today, commit(), rows_of(header, rows)))
    text = render(machines)
    path.write_text(text)
    if (lines := text.count("\n")) > LIMIT:
        print(f"{path} has {lines} lines, more than {LIMIT}: take out tables that are of no use any more")
