"""Two types of one name in one namespace are undefined behaviour that no compiler tells of."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENED = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
DEFINED = re.compile(r"^(?:struct|class) (\w+)(?: final)?(?: : [^{;]*)? \{", re.MULTILINE)


def types_in_headers() -> dict[str, list[str]]:
    """Qualified name -> headers that define it; types of ISA files are apart by their namespace."""
    found = defaultdict(list)
    for header in (
        p
        for folder in ("csrc", "ext/bindings", "torch_backend/native", "providers/ort")
        for p in ROOT.glob(f"{folder}/**/*.h")
    ):
        text = header.read_text()
        namespaces = [(m.start(), m[1]) for m in OPENED.finditer(text)]
        for definition in DEFINED.finditer(text):
            around = [name for start, name in namespaces if start < definition.start()]
            if around and "SN_ISA" not in text and "/simd/" not in str(header):
                found[f"{around[-1]}::{definition[1]}"].append(str(header.relative_to(ROOT)))
    return found


def test_types_of_one_namespace_have_names_of_their_own() -> None:
    found = types_in_headers()
    assert len(found) > 100
    assert {name: headers for name, headers in found.items() if len(headers) > 1} == {}
