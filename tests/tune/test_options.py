"""The option table and its parser."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softneuro import _C

NAMES = [row["name"] for row in _C.option_table()]


def test_defaults_of_table_and_struct_agree() -> None:
    default = _C.format_options(_C.Options())
    assert sorted(default) == sorted(NAMES)
    shown = {row["name"]: row["default"] for row in _C.option_table()}
    assert _C.format_options(_C.parse_options(shown)) == default
    assert all(row["help"] and row["range"] for row in _C.option_table())


def test_values_are_read() -> None:
    options = _C.parse_options(
        {
            "schemas": "float32, cpu:float32:nchw16c",
            "max_error": "1e-3",
            "threads": "4",
            "tune": "cached",
            "host": "inductor",
            "plan": "a b.plan",
            "never_worse": "0",
            "strict_nonfinite": "True",
            "flush_denormals": "1",
        }
    )
    assert options.schemas == ["float32", "cpu:float32:nchw16c"]
    assert options.max_error == 1e-3
    assert options.threads == 4
    assert options.tune == _C.TuneMode.cached
    assert options.host == _C.HostMode.inductor
    assert options.plan == "a b.plan"
    assert not options.never_worse
    assert options.strict_nonfinite
    assert options.flush_denormals
    texts = _C.format_options(options)
    assert _C.format_options(_C.parse_options(texts)) == texts


@pytest.mark.parametrize(("given_name", "meant"), [("thread", "threads"), ("max_eror", "max_error"), ("Tune", "tune")])
def test_unknown_names_come_with_the_nearest(given_name: str, meant: str) -> None:
    with pytest.raises(_C.Error, match=f"no option '{given_name}'.*did you mean '{meant}'"):
        _C.parse_options({given_name: "1"})


BAD = {
    "schemas": ["", "float33", "float32,", "cpu:float32", "cpu:float32:nchw16", "a:b:c:d"],
    "max_error": ["0", "-1", "nan", "inf", "", "1e", "1 ", "0x1"],
    "threads": ["-1", "1.5", "", "99999", "99999999999999999999", "+1", " 1"],
    "tune": ["", "on", "Profile"],
    "time_budget_s": ["0", "-3", "nan"],
    "host": ["jit", ""],
    "min_region_size": ["0", "x"],
    "never_worse": ["2", "yes", ""],
    "shortcuts": ["2"],
    "strict_nonfinite": ["no"],
    "flush_denormals": ["2"],
    "max_memory": ["0", "-1"],
    "verbose": ["4", "-1"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_bad_values_name_option_and_range(name: str, text: str) -> None:
    with pytest.raises(_C.Error, match=f"option {name}: .*give "):
        _C.parse_options({name: text})


@settings(deadline=None, database=None)
@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=9), st.text(max_size=12), max_size=4))
def test_any_text_parses_or_is_refused(values: dict[str, str]) -> None:
    try:
        texts = _C.format_options(_C.parse_options(values))
    except _C.Error:
        return
    assert _C.format_options(_C.parse_options(texts)) == texts
