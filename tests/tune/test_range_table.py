"""The text form of calibrated ranges."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softneuro import _C

NASTY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**63 - 1)
INDEX = st.integers(0, 10_000_000)
MEANS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5)
ERROR = st.none() | st.floats(0)
BLOBS = st.builds(
    lambda index, name, bounds, *rest: _C.BlobRange(index, name, min(bounds), max(bounds), *rest),
    INDEX,
    NASTY,
    st.tuples(FINITE, FINITE),
    COUNT,
    COUNT,
    ERROR,
    st.none() | st.tuples(FINITE, FINITE).map(sorted).map(tuple),
)
SECTIONS = st.builds(
    _C.RangeSection,
    NASTY,
    NASTY,
    NASTY,
    COUNT,
    COUNT,
    st.lists(BLOBS, max_size=5, unique_by=lambda row: row.blob),
    st.lists(
        st.builds(_C.LayerError, INDEX, NASTY, NASTY, ERROR, st.booleans()), max_size=4, unique_by=lambda row: row.layer
    ),
    st.lists(st.builds(_C.BlobMeans, INDEX, MEANS), max_size=3, unique_by=lambda row: row.blob),
)


def sample(structure: str = "9f3a", weights: str = "5ba1", method: str = "percentile:99.99") -> _C.RangeSection:
    return _C.RangeSection(
        structure,
        weights,
        method,
        12,
        384,
        [_C.BlobRange(0, "x", -2.5, 3, 1000, 2, seen=(-4, 3.25)), _C.BlobRange(3, "conv 1", 0, 0.1, 64000, 0, 1.5e-3)],
        [_C.LayerError(0, "conv 1", "bytes", 0.002, True), _C.LayerError(2, "fc", "bytes")],
        [_C.BlobMeans(0, [0.25, -1])],
    )


def of(*sections: _C.RangeSection) -> _C.RangeTable:
    table = _C.RangeTable()
    for section in sections:
        table.set(section)
    return table


def test_the_text_reads_well() -> None:
    assert of(sample()).format() == (
        "softneuro-ranges 2\n"
        "ranges 9f3a 5ba1\n"
        "method percentile:99.99\n"
        "observed 12 384\n"
        "blob 0 x -2.5 3 1000 2 - -4 3.25\n"
        "blob 3 conv%201 0 0.10000000149011612 64000 0 0.0015 - -\n"
        "mean 0 0.25 -1\n"
        "layer 0 conv%201 bytes 0.002 corrected\n"
        "layer 2 fc bytes - -\n"
        "end\n"
    )


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(SECTIONS, max_size=4))
def test_round_trip_in_any_order(sections: list[_C.RangeSection]) -> None:
    table = of(*sections)
    text = table.format()
    again = _C.RangeTable.parse(text)
    assert again.sections == table.sections
    assert again.format() == text
    for section in table.sections:
        assert again.find(section.structure, section.weights) == section
    latest = {(section.structure, section.weights): section for section in sections}
    assert of(*reversed(latest.values())).format() == text


@settings(max_examples=60, deadline=None, database=None)
@given(SECTIONS)
def test_rows_may_come_in_any_order(section: _C.RangeSection) -> None:
    text = of(section).format()
    section.blobs = section.blobs[::-1]
    section.layers = section.layers[::-1]
    assert of(section).format() == text


def test_fields_are_kept_and_may_be_changed() -> None:
    row = _C.BlobRange(3, "a", -1, 2)
    assert (row.blob, row.name, row.least, row.most, row.count, row.nonfinite, row.error) == (3, "a", -1, 2, 0, 0, None)
    row.least, row.error, row.count = 0.1, math.inf, 7
    section = _C.RangeSection("s", "w", "mse")
    section.blobs, section.samples = [row], 5
    found = _C.RangeTable.parse(of(section).format()).sections[0]
    assert found == section
    assert found.blobs[0].least == np.float32(0.1)
    assert found.blobs[0].error == math.inf
    assert (found.structure, found.weights, found.method, found.batches, found.samples) == ("s", "w", "mse", 0, 5)


@settings(max_examples=200, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(_C.Error, match="line "):
        _C.RangeTable.parse(data)


@settings(max_examples=150, deadline=None, database=None)
@given(st.data())
def test_mutations_parse_or_name_the_line(data: st.DataObject) -> None:
    text = bytearray(of(sample("a"), sample("b")).format().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 40)))
        text[at:end] = data.draw(st.binary(max_size=6) | st.sampled_from([b"\n", b" ", b"end\n", b"-1", b"1e999"]))
    try:
        table = _C.RangeTable.parse(bytes(text))
    except _C.Error as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "line " in refusal
    else:
        assert _C.RangeTable.parse(table.format()).sections == table.sections


def test_every_truncation_is_noticed() -> None:
    text = of(sample()).format()
    for cut in set(range(len(text))) - {len("softneuro-ranges 2\n")}:
        with pytest.raises(_C.Error, match="line "):
            _C.RangeTable.parse(text[:cut])


def test_files_of_the_first_version_tell_no_seen_values() -> None:
    text = (
        of(sample()).format().replace("ranges 2", "ranges 1", 1).replace(" - -4 3.25", " -").replace(" - -\n", " -\n")
    )
    text = text.replace("0.0015 -\n", "0.0015\n").replace("mean 0 0.25 -1\n", "").replace(" corrected\n", "\n")
    [section] = _C.RangeTable.parse(text).sections
    assert [row.seen for row in section.blobs] == [None, None]
    expected = sample()
    expected.blobs, expected.means, expected.layers = section.blobs, [], section.layers
    assert section == expected
    assert [row.corrected for row in section.layers] == [False, False]


def test_layers_of_files_of_before_biases_are_not_corrected() -> None:
    text = of(sample()).format().replace(" corrected\n", "\n").replace("fc bytes - -\n", "fc bytes -\n")
    [section] = _C.RangeTable.parse(text).sections
    assert [row.corrected for row in section.layers] == [False, False]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "softneuro-ranges 2",
            "softneuro-ranges 3",
            r"line 1: made by another version of softneuro \(give another path",
        ),
        ("softneuro-ranges 2", "softneuro-plan 3", "line 1: this is no file of ranges"),
        ("ranges 9f3a", "ranges 9f3a extra", "line 2: 'ranges' has 3 values, not 2"),
        ("method", "methods", "line 3: expected 'method'"),
        ("observed 12", "observed -1", "line 4: a count is not"),
        ("384", "99999999999999999999", "line 4: a count is not"),
        ("blob 0", "blob -1", "line 5: an index"),
        ("-2.5 3 ", "-2.5 nan ", "line 5: a bound is not"),
        ("-2.5 3 ", "-2.5 1e39 ", "line 5: a bound is not"),
        ("-2.5 3 ", "-2.5 -3 ", "line 5: a range ends before it begins"),
        ("1000 2 -", "1000 2 -1", "line 5: an error is neither"),
        ("1000 2 -", "1000 2 nan", "line 5: an error is neither"),
        ("- -4 3.25", "- 4 3.25", "line 5: what was seen ends"),
        ("- -4 3.25", "- - 3.25", "line 5: a bound is not"),
        ("blob 3", "blob 0", "line 6: blobs are out of order"),
        ("conv%201", "conv%2", "line 6: a text is not escaped"),
        ("layer 2", "layer 0", "line 9: layers are out of order"),
        ("layer 2 fc bytes - -", "blob 7 fc 0 1 1 0 - - -", "line 9: blobs come before means"),
        ("layer 2", "lawyer 2", "line 9: expected 'end'"),
        ("end\n", "end\nranges 9f3a 5ba1\nmethod mse\nobserved 0 0\nend\n", "two are for the same"),
        ("fc", "x" * 70_000, "line 9: the line is longer"),
    ],
)
def test_errors_say_what_and_where(old: str, new: str, message: str) -> None:
    text = of(sample()).format()
    assert old in text
    with pytest.raises(_C.Error, match=message):
        _C.RangeTable.parse(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("blobs", "layers", "message"),
    [
        ([_C.BlobRange(1, "", 0, 1), _C.BlobRange(1, "", 0, 1)], [], "blob 1 appears twice"),
        ([_C.BlobRange(-1, "", 0, 1)], [], "blob -1 is out of range"),
        ([_C.BlobRange(1, "", 1, 0)], [], "blob 1 has a range that is none"),
        ([_C.BlobRange(1, "", math.nan, 0)], [], "blob 1 has a range that is none"),
        ([_C.BlobRange(1, "", 0, math.inf)], [], "blob 1 has a range that is none"),
        ([_C.BlobRange(1, "", 0, 1, -1)], [], "blob 1 has a count below 0"),
        ([_C.BlobRange(1, "", 0, 1, 0, 0, math.nan)], [], "blob 1 has an error that is not"),
        ([], [_C.LayerError(2, "", "bytes", -1.0)], "layer 2 has an error that is not"),
        ([], [_C.LayerError(2, "", "bytes"), _C.LayerError(2, "", "bytes")], "layer 2 appears twice"),
    ],
)
def test_what_cannot_be_written_is_refused(
    blobs: list[_C.BlobRange], layers: list[_C.LayerError], message: str
) -> None:
    with pytest.raises(_C.Error, match=message):
        of(_C.RangeSection("s", "w", "mse", 0, 0, blobs, layers))


def test_saving_merges_by_section(tmp_path: Path) -> None:
    path = str(tmp_path / "model.ranges")
    of(sample("a"), sample("b", method="mse")).save(path)
    of(sample("b", method="entropy"), sample("b", "other"), sample("c")).save(path)
    merged = of(sample("a"), sample("b", method="entropy"), sample("b", "other"), sample("c"))
    assert _C.RangeTable.load(path).sections == merged.sections
    assert _C.RangeTable.load(path).find("z", "5ba1") is None


def test_saving_never_overwrites_what_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("print('precious')\n")
    with pytest.raises(_C.Error, match=r"model.py, line 1: this is no file of ranges"):
        of(sample()).save(str(path))
    assert path.read_text() == "print('precious')\n"
    with pytest.raises(_C.Error, match="cannot save the ranges"):
        of(sample()).save(str(tmp_path / "missing" / "a.ranges"))
    with pytest.raises(_C.Error, match="cannot read the ranges: No such file"):
        _C.RangeTable.load(str(tmp_path / "none.ranges"))
    with pytest.raises(_C.Error, match="is not a file"):
        _C.RangeTable.load(str(tmp_path))


def test_processes_saving_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom softneuro import _C\nfor i in range(20):\n    table = _C.RangeTable()\n"
        "    table.set(_C.RangeSection(f'{sys.argv[2]}{i}', 'w', 'mse'))\n    table.save(sys.argv[1])\n"
    )
    path = str(tmp_path / "model.ranges")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    writers = [subprocess.Popen([sys.executable, "-c", program, path, name], env=env) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(_C.RangeTable.load(path).sections) == 40
