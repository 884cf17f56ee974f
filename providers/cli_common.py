"""What commands of the command line have in common."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from softneuro.providers import library, report

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def pair(text: str) -> tuple[str, str]:
    """A name and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command a model, shapes, options and --json."""
    option = "Option of the library, as NAME=VALUE; see `softneuro info`."
    shape = "Shape of an input, for instance x=1,3,224,224."
    for decorate in (
        JSON,
        click.option("-O", "--option", "options", type=pair, multiple=True, help=option),
        click.option("--shape", "shapes", type=pair, multiple=True, help=shape),
        MODEL,
    ):
        command = decorate(command)
    return command


@contextlib.contextmanager
def replaced(path: str) -> Iterator[None]:
    """Puts a file aside for what is to take its place, and back if nothing does."""
    file = Path(path)
    aside = file.with_name(f"{file.name}.before")
    if file.exists():
        file.rename(aside)
    try:
        yield
    except BaseException:
        if aside.exists():
            aside.replace(file)
        raise
    aside.unlink(missing_ok=True)


def show(as_json: bool, data: dict[str, Any], lines: Sequence[str]) -> None:
    """Prints lines, or data."""
    click.echo(json.dumps(_strict(data), indent=2, allow_nan=False) if as_json else "\n".join(lines))


def _strict(value: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _strict(one) for key, one in value.items()}
    return [_strict(one) for one in value] if isinstance(value, list | tuple) else value


def settings_of(model: str, shapes: Sequence[tuple[str, str]]) -> Any:
    """Session options in which these inputs' open dimensions are fixed."""
    settings = library.runtime().SessionOptions()
    if not shapes:
        return settings
    plain = library.runtime().InferenceSession(model, providers=["CPUExecutionProvider"])
    inputs = {entry.name: entry.shape for entry in plain.get_inputs()}
    for name, text in shapes:
        try:
            sizes = [int(part) for part in text.split(",")]
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a list of sizes", param_hint="--shape") from None
        declared = inputs.get(name)
        if declared is None or len(declared) != len(sizes):
            known = ", ".join(f"{n}{list(s)}" for n, s in inputs.items())
            raise click.BadParameter(f"no input {name} of {len(sizes)} dimensions: {known}", param_hint="--shape")
        for size, dim in zip(sizes, declared, strict=True):
            if isinstance(dim, str) and dim:
                settings.add_free_dimension_override_by_name(dim, size)
            elif dim != size:
                raise click.BadParameter(f"{name} has {dim} where {size} is given", param_hint="--shape")
    return settings


def summary(session: Any) -> dict[str, Any]:
    """What a session does where."""
    reported = report.events(session)
    regions = [{key: value for key, value in e.items() if key != "event"} for e in reported if e["event"] == "prepared"]
    graphs = [{key: value for key, value in e.items() if key != "event"} for e in reported if e["event"] == "partition"]
    return {"graphs": graphs, "regions": regions}
