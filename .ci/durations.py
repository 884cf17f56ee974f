"""Keeps how long tests took: .ci/durations.py REPORT..., of pytest's --junitxml, to tests/durations.json.

Test file -> how many tests it has, seconds of all of them and of the longest. Files that no report names stay as they
are, unless they are gone.
"""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "durations.json"


def test_file(classname: str, root: Path) -> str | None:
    """Path of the test file that a case's dotted name lies in, None if it is gone."""
    parts = classname.split(".")
    paths = ("/".join(parts[:count]) + ".py" for count in range(len(parts), 0, -1))
    return next((path for path in paths if (root / path).exists()), None)


def read(reports: list[Path], root: Path) -> dict[str, dict[str, float]]:
    """Durations by test file, in seconds."""
    seconds: dict[str, list[float]] = {}
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):
            if name := test_file(case.get("classname", ""), root):
                seconds.setdefault(name, []).append(float(case.get("time", 0)))
    return {
        name: {"tests": len(each), "all": round(sum(each), 1), "longest": round(max(each), 1)}
        for name, each in seconds.items()
    }


def main() -> None:
    """Adds what the reports say to what is kept."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept |= read([Path(name) for name in sys.argv[1:]], ROOT)
    lines = (f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in sorted(kept.items()) if (ROOT / name).exists())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
