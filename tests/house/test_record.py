"""What the benchmarks write into RESULTS.md."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import record

HEADER = ("network", "ms")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to record in, on a machine named A."""
    monkeypatch.delenv("SOFTNEURO_MAX_ISA", raising=False)
    monkeypatch.setattr(record, "machine_name", lambda: "A")
    monkeypatch.setattr(record, "commit", lambda: "abc1234")
    return tmp_path / "RESULTS.md"


def tables(path: Path) -> dict[str, list[tuple[str, list[str]]]]:
    """By machine: command and rows."""
    machines = record.parse(path.read_text())
    return {m.name: [(t.command, t.lines[2:]) for t in m.tables] for m in machines}


def test_a_table_takes_the_place_of_the_same_commands_table(results: Path) -> None:
    record.write("networks", ["--seconds", "3"], HEADER, [("a", "1"), ("b", "2")], results)
    record.write("memory", [], HEADER, [("c", "3")], results)
    record.write("networks", ["--seconds=9", "--record", "--json", "x.json"], HEADER, [("a", "4")], results)
    assert tables(results) == {
        "A": [
            ("python -m benchmarks.networks --seconds=9", ["| a | 4 |"]),
            ("python -m benchmarks.memory", ["| c | 3 |"]),
        ]
    }


def test_other_arguments_and_other_machines_have_tables_of_their_own(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.write("networks", [], HEADER, [("a", "1")], results)
    record.write("networks", ["--threads", "1"], HEADER, [("a", "2")], results)
    monkeypatch.setenv("SOFTNEURO_MAX_ISA", "avx2")
    record.write("networks", [], HEADER, [("a", "3")], results)
    monkeypatch.setattr(record, "machine_name", lambda: "B")
    record.write("networks", [], HEADER, [("a", "4")], results)
    assert [rows for found in tables(results).values() for _, rows in found] == [[f"| a | {i} |"] for i in (1, 2, 3, 4)]
    assert tables(results)["B"][0][0] == "SOFTNEURO_MAX_ISA=avx2 python -m benchmarks.networks"


def test_the_file_says_what_was_measured_when(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record.write("peak", [], ("threads", "a|b"), [("1", "2")], results)
    text = results.read_text()
    assert text.startswith(record.INTRO)
    heading, _, header, *_ = text.partition("## A\n\n")[2].splitlines()
    assert record.HEADING.fullmatch(heading)
    assert heading.endswith(", abc1234)")
    assert header == r"| threads | a\|b |"
    assert record.render(record.parse(text)) == text


def test_rows_have_a_cell_for_each_column(results: Path) -> None:
    with pytest.raises(ValueError, match="cell"):
        record.write("peak", [], HEADER, [("1",)], results)
    assert not results.exists()


@pytest.mark.parametrize("line", ["Measured by hand.", "### `python -m benchmarks.peak`", "- 1 ms"])
def test_what_no_benchmark_wrote_is_refused_and_kept(results: Path, line: str) -> None:
    record.write("peak", [], HEADER, [("1", "2")], results)
    text = results.read_text() + line + "\n"
    results.write_text(text)
    with pytest.raises(ValueError, match=r"RESULTS\.md"):
        record.write("peak", [], HEADER, [("1", "3")], results)
    assert results.read_text() == text


def test_figures_of_a_changed_tree_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    results = tmp_path / "benchmarks" / "RESULTS.md"
    results.parent.mkdir()
    monkeypatch.setattr(record, "RESULTS", results)
    assert record.commit() == "unknown"
    git("init")
    (tmp_path / "code").write_text("1")
    git("add", "code")
    git("commit", "-m", "one")
    results.write_text("that figures were recorded before is no change")
    clean = record.commit()
    (tmp_path / "code").write_text("2")
    assert record.commit() == clean + "+"
    assert "+" not in clean


def test_a_long_file_is_told_of(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record.write("peak", [], HEADER, [("1", "2")], results)
    assert capsys.readouterr().out == ""
    record.write("routines", [], HEADER, [("1", "2")] * record.LIMIT, results)
    assert str(record.LIMIT) in capsys.readouterr().out


def test_the_recorded_figures_are_as_benchmarks_write_them() -> None:
    text = record.RESULTS.read_text()
    assert record.render(record.parse(text)) == text
