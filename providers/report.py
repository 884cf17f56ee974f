"""What a session does where, as the provider reports it."""

from __future__ import annotations

import contextlib
import json
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import softneuro

_EXAMPLES = 3  # names shown per op
_newest: list[Path] = []  # of the session that is being made
_files: weakref.WeakKeyDictionary[Any, Path] = weakref.WeakKeyDictionary()
_ends: weakref.WeakKeyDictionary[Any, weakref.finalize[..., Any]] = weakref.WeakKeyDictionary()


def new_file() -> Path:
    """A file for the session that is made next to report to."""
    with tempfile.NamedTemporaryFile(prefix="softneuro-", suffix=".jsonl", delete=False) as file:
        path = Path(file.name)
    _newest[:] = [path]
    return path


def _lines(path: Path) -> list[str]:
    """Names in it are a model's: any bytes, and characters that Python breaks lines at."""
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]


def latest_progress() -> tuple[int, int] | None:
    """Routines measured and in all, of the session made last; None while it has not begun to tune."""
    for path in _newest:
        with contextlib.suppress(OSError, ValueError):
            for line in reversed(_lines(path)):
                event = json.loads(line)
                if event["event"] == "progress":
                    return int(event["done"]), int(event["total"])
    return None


def remember(session: Any, path: Path) -> None:
    """Ties the file to its session: it disappears with it."""
    _files[session] = path
    _ends[session] = weakref.finalize(session, path.unlink, missing_ok=True)


def outliving(session: Any) -> contextlib.AbstractContextManager[None]:
    """Keeps a session's file until the block ends, in which the session may."""
    _ends[session].detach()
    return _removing(_files[session])


@contextlib.contextmanager
def _removing(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def events(session: Any) -> list[dict[str, Any]]:
    """What the provider has reported so far: `partition`, `progress`, `prepared` and `outside` events, oldest first.

    Raises:
        Error: the session was not made by `softneuro.providers.session`.
    """
    if session not in _files:
        raise softneuro.Error("this session was not made by softneuro.providers.session")
    return [json.loads(line) for line in _lines(_files[session])]


def explain(session: Any) -> str:
    """Tells what runs where and why; prints the text and returns it.

    Shapes that are known only at run time appear after the first run with them.
    """
    text = "\n".join(text_lines(events(session)))
    print(text)
    return text


def text_lines(reported: list[dict[str, Any]]) -> list[str]:
    """Events as `explain` tells them."""
    lines = []
    for event in reported:
        if event["event"] == "partition":
            lines.append(f"graph {event['graph'] or 'main'}: {event['claimed']} of {event['nodes']} nodes")
            lines += _host_lines(event["host"])
            lines += _step_lines(event["steps"])
            lines += [_cut_line(cut) for cut in event["cuts"]]
        elif event["event"] == "prepared":
            lines.append(_outcome(event) + _peak(event))
            lines += [_layer(layer) for layer in event.get("layers", [])]
    last = {event["region"]: event for event in reported if event["event"] == "outside"}
    lines += [_outside(event, one) for event in last.values() for one in event["inputs"]]
    return [printable(line) for line in lines] or ["no graph has been looked at"]


def printable(text: str) -> str:
    """One line that any terminal shows, whatever a model's names are made of."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _host_lines(host: list[dict[str, str]]) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for node in host:
        groups.setdefault((node["op"], node["reason"]), []).append(node["name"])
    lines = ["  on the CPU provider:"] if groups else []
    lines += [f"    {_named(op, names)}: {reason}" for (op, reason), names in sorted(groups.items())]
    return lines


def _step_lines(steps: list[dict[str, str]]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for node in steps:
        groups.setdefault(node["op"], []).append(node["name"])
    lines = ["  inside regions, run by the CPU provider:"] if groups else []
    lines += [f"    {_named(op, names)}" for op, names in sorted(groups.items())]
    return lines


def _cut_line(cut: dict[str, Any]) -> str:
    names = [f"{node['op']} ({node['name']})" for node in cut["ops"]]
    more = ", ..." if len(names) > _EXAMPLES else ""
    return f"  between {cut['before']} and {cut['after']}: {', '.join(names[:_EXAMPLES])}{more}"


def _named(op: str, names: list[str]) -> str:
    shown = ", ".join(names[:_EXAMPLES]) + (", ..." if len(names) > _EXAMPLES else "")
    return f"{op} x{len(names)} ({shown})"


def _outcome(event: dict[str, Any]) -> str:
    head = f"region {event['region']}, inputs {event['inputs']}, {event['threads']:.0f} thread(s): "
    if event["host"]:
        return head + f"the CPU provider runs it: {event['host']}"
    if "seconds" in event:
        ours, theirs = 1e3 * event["seconds"], 1e3 * event["host_seconds"]
        return head + f"softneuro runs it: {ours:.3f} ms against {theirs:.3f} ms, error {event['error']:.1e}"
    return head + "softneuro runs it"


def _outside(event: dict[str, Any], one: dict[str, Any]) -> str:
    value = "what is not finite" if one["value"] is None else f"{one['value']:.4g}"
    return (
        f"region {event['region']}: input {one['name']} was outside of what calibration observed, "
        f"{one['least']:.4g} to {one['most']:.4g}, in {one['calls']:.0f} of {event['looked']:.0f} calls looked at: "
        f"up to {value}; calibrate again with such data"
    )


def _peak(event: dict[str, Any]) -> str:
    if event["host"] or "peak_bytes" not in event:
        return ""
    return f"; peak {event['peak_bytes'] / 2**20:.1f} MiB with packed weights, inputs and outputs"


def _layer(layer: dict[str, Any]) -> str:
    regret = layer["regret"]
    kept = "no other routine" if regret is None else f"regret {1e3 * regret:.3f} ms"
    routine = layer["descriptor"] or "with a layer below"
    reason = f"; in floats: {layer['in_floats']}" if "in_floats" in layer else ""
    return f"    {layer['name']:32} {routine:60} {1e3 * layer['seconds']:8.3f} ms  {kept}{reason}"
