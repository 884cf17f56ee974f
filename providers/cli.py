"""The command line: what the library can do with an ONNX model, for shells and scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import softneuro
from softneuro import _C, device, providers
from softneuro.providers import bench as timing
from softneuro.providers import library, progress, report, zeros
from softneuro.report.sparsity import Measured

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    option = "Option of the library, as NAME=VALUE; see `softneuro info`."
    shape = "Shape of an input, for instance x=1,3,224,224."
    for decorate in (
        JSON,
        click.option("-O", "--option", "options", type=_pair, multiple=True, help=option),
        click.option("--shape", "shapes", type=_pair, multiple=True, help=shape),
        MODEL,
    ):
        command = decorate(command)
    return command


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Failures that have an explanation end with it and status 1."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, softneuro.Error) or type(error).__module__.startswith("onnxruntime"):
                raise click.ClickException(str(error).strip()) from error
            raise


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(softneuro.__version__)
def main() -> None:
    """Makes ONNX models run faster: every layer's routine is chosen by measurement."""


def _show(as_json: bool, data: dict[str, Any], lines: Sequence[str]) -> None:
    click.echo(json.dumps(data, indent=2) if as_json else "\n".join(lines))


def _settings(model: str, shapes: Sequence[tuple[str, str]]) -> Any:
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


def _summary(session: Any) -> dict[str, Any]:
    reported = report.events(session)
    regions = [{key: value for key, value in e.items() if key != "event"} for e in reported if e["event"] == "prepared"]
    graphs = [{key: value for key, value in e.items() if key != "event"} for e in reported if e["event"] == "partition"]
    return {"graphs": graphs, "regions": regions}


@main.command()
@click.option("--peaks", is_flag=True, help="Measure what this machine can do at most (some seconds).")
@JSON
def info(*, peaks: bool, as_json: bool) -> None:
    """Shows the device, the instruction sets, the options and the routines."""
    data: dict[str, Any] = {
        "version": softneuro.__version__,
        "cpu": softneuro.cpu_brand(),
        "device": softneuro.cpu_id(),
        "cores": _C.physical_cores(),
        "isas": softneuro.available_isas(),
        "extensions": softneuro.available_extensions(),
        "options": softneuro.option_table(),
        "routines": softneuro.registry(),
    }
    if peaks:
        data["fma_gflops"] = {isa: device.fma_peak(isa) / 1e9 for isa in softneuro.available_isas()}
        data["read_gbytes"] = {level: device.bandwidth("read", level) / 1e9 for level in device.LEVELS}
    lines = [f"softneuro {data['version']} on {data['cpu']} ({data['device']}), {data['cores']} core(s)"]
    lines.append("instruction sets, best first: " + ", ".join(data["isas"]))
    if data["extensions"]:
        lines[-1] += "; also " + ", ".join(data["extensions"])
    if peaks:
        lines += [f"  {isa}: {peak:.1f} GFLOP/s per core" for isa, peak in data["fma_gflops"].items()]
        lines += [f"  {level}: {rate:.1f} GB/s read by one core" for level, rate in data["read_gbytes"].items()]
    lines.append("options:")
    lines += [f"  {row['name']}={row['default']}  ({row['range']}) {row['help']}" for row in data["options"]]
    counts: dict[str, int] = {}
    for entry in data["routines"]:
        counts[entry["layer"]] = counts.get(entry["layer"], 0) + bool(entry["available"])
    lines.append("routines here, by layer: " + ", ".join(f"{layer} {count}" for layer, count in counts.items()))
    _show(as_json, data, lines)


@main.command()
@_common
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), help="Model to write.")
@click.option("--embed", is_flag=True, help="Keep everything in the one file, which loads more slowly.")
@click.option("--no-packed", is_flag=True, help="Leave packed weights out: a smaller file, packed when loaded.")
@click.option("--force", is_flag=True, help="Replace OUT.")
def tune(
    *, model: str, out: str, options: Any, shapes: Any, embed: bool, no_packed: bool, force: bool, as_json: bool
) -> None:
    """Tunes MODEL for this machine and writes OUT, which starts without tuning.

    Programs load it with the provider, as any model. Only shapes that are fixed can be tuned ahead: see --shape.
    """
    if Path(out).exists():
        if not force:
            raise click.ClickException(f"{out} exists; --force replaces it")
        Path(out).unlink()
    settings = _settings(model, shapes)
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", str(out))
    settings.add_session_config_entry("ep.context_embed_mode", "1" if embed else "0")
    settings.add_session_config_entry("softneuro.context_packed", "0" if no_packed else "1")
    with progress.shown("tuning"):
        session = providers.session(model, settings, **dict(options))
    if not Path(out).exists():
        raise click.ClickException("no region of the model runs faster here, so there is nothing to save")
    data = {"out": str(out), **_summary(session)}
    if not data["regions"]:
        click.echo("nothing could be tuned ahead, since shapes are open: fix them with --shape", err=True)
    _show(as_json, data, [*report.text_lines(report.events(session)), f"wrote {out}"])


@main.command()
@_common
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), help="Model to write.")
@click.option("--plan", type=click.Path(dir_okay=False), help="Plan file to use, and to add to.")
def convert(*, model: str, out: str, plan: str | None, options: Any, shapes: Any, as_json: bool) -> None:
    """Writes MODEL with its convolutions and linear layers as ops that name their routines."""
    with progress.shown("tuning"):
        replaced = providers.convert(model, out, plan, sess_options=_settings(model, shapes), **dict(options))
    rows = [f"{name:40} {descriptor or '(chosen when run)'}" for name, descriptor in replaced.items()]
    lines = [report.printable(row) for row in rows]
    _show(as_json, {"out": str(out), "nodes": replaced}, [*lines, f"wrote {out}"])


@main.command()
@_common
@click.option("--against", type=click.Choice(["cpu", "none"]), default="cpu", help="What to compare with.")
@click.option("--seconds", type=click.FloatRange(min=0.05), default=5, show_default=True, help="To measure for.")
def bench(*, model: str, against: str, seconds: float, options: Any, shapes: Any, as_json: bool) -> None:
    """Times MODEL, its runs alternating with those of ONNX Runtime's CPU provider."""
    with progress.shown("tuning"):
        session = providers.session(model, _settings(model, shapes), **dict(options))
    cpu = None
    if against == "cpu":
        cpu = library.runtime().InferenceSession(model, _settings(model, shapes), providers=["CPUExecutionProvider"])
    data = timing.alternate(session, cpu, seconds)
    lines = [f"softneuro     {1e3 * data['seconds']:9.3f} ms (median of {data['runs']})"]
    if cpu is not None:
        lines.append(f"CPU provider  {1e3 * data['cpu_seconds']:9.3f} ms")
        lines.append(f"{data['speedup']:.2f} times as fast, relative error {data['error']:.1e}")
    _show(as_json, data, lines)


@main.command()
@_common
def explain(*, model: str, options: Any, shapes: Any, as_json: bool) -> None:
    """Tells what of MODEL runs where, with which routines, and why."""
    with progress.shown("tuning"):
        session = providers.session(model, _settings(model, shapes), **dict(options))
    _show(as_json, _summary(session), report.text_lines(report.events(session)))


@main.command()
@_common
def sparsity(*, model: str, options: Any, shapes: Any, as_json: bool) -> None:
    """Tells how many zeros MODEL's weights have, in which patterns, and what they gain.

    With -O tune=cached nothing is measured, with tune=off only zeros are told.
    """
    measured = Measured()
    if dict(options).get("tune") != "off":
        with progress.shown("tuning"):
            session = providers.session(model, _settings(model, shapes), **dict(options))
        for event in report.events(session):
            if event["event"] == "prepared" and "layers" in event:
                measured.add(event["dense_s"], event["best_s"], event["layers"])
    found = measured.report(zeros.layers(model))
    _show(as_json, found.as_dict(), str(found).split("\n"))
