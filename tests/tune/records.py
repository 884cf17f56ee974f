"""What tests read from the cost database, and what they make up in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from softneuro import _C


class Record(NamedTuple):
    kind: str
    key: _C.CostKey
    fields: dict[str, Any]


class Cost(NamedTuple):
    """A time or, where nothing was measured, a forecast; the key is a time's."""

    key: _C.CostKey
    signature: str
    descriptor: str
    seconds: float

    def make_up(self, seconds: float) -> None:
        """Another time in the default directory's database."""
        _C.CostDb().add(self.key, seconds)


def records(folder: Path, kind: str = "") -> list[Record]:
    """The newest of each key, the oldest first."""
    found = [Record(*record) for record in _C.CostDb(str(folder)).records()]
    return [record for record in found if kind in {"", record.kind}]


def costs(folder: Path) -> list[Cost]:
    """Costs of routines, and of nets, whose signatures speak of their graph."""
    found: dict[tuple[str, str], Cost] = {}
    for kind, key, fields in records(folder):
        name = key.signature, key.descriptor
        if kind == "time" or (kind == "forecast" and name not in found):
            plain = _C.CostKey(key.device, key.threads, key.signature, key.descriptor, key.version)
            found[name] = Cost(plain, key.signature, key.descriptor, fields["seconds"])
    return list(found.values())
