"""The command line: what the library can do with an ONNX model, for shells and scripts."""

from __future__ import annotations

from typing import Any

import click

import softneuro
from softneuro import _C, device, providers
from softneuro.providers import bench as timing
from softneuro.providers import cli_budget, library, progress, report, zeros
from softneuro.providers.cli_common import JSON, common, settings_of, show, summary
from softneuro.report.sparsity import Measured


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


@main.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--peaks", is_flag=True, help="Measure what this machine can do at most (some seconds).")
@JSON
def info(*, model: str | None, peaks: bool, as_json: bool) -> None:
    """Shows the device, the instruction sets, the options and the routines.

    Of a MODEL it shows which nodes would be taken and which not, and why. Nothing is measured.
    """
    if model is not None:
        session = providers.session(model, settings_of(model, ()), tune="off", never_worse=False)
        found = [event for event in report.events(session) if event["event"] == "partition"]
        show(as_json, {"graphs": found}, report.text_lines(found))
        return
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
    show(as_json, data, lines)


@main.command()
@common
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), help="Model to write.")
@click.option("--plan", type=click.Path(dir_okay=False), help="Plan file to use, and to add to.")
@click.option("--qdq", type=click.Path(exists=True, dir_okay=False), help="File of ranges, for a model of bytes.")
def convert(
    *, model: str, out: str, plan: str | None, qdq: str | None, options: Any, shapes: Any, as_json: bool
) -> None:
    """Writes MODEL with its convolutions and linear layers as ops that name their routines.

    With --qdq they stay as they are, with QuantizeLinear and DequantizeLinear around them, which other runtimes load:
    around all of them, or with -O max_error=E around those that would compute with bytes here.
    """
    if qdq is not None:
        given = dict(options)
        error = float(given.pop("max_error")) if "max_error" in given else None
        with progress.shown("tuning"):
            done = providers.to_qdq(
                model, out, qdq, max_error=error, options=given, sess_options=settings_of(model, shapes)
            )
        show(as_json, {"out": str(out), "nodes": done}, [*map(report.printable, done), f"wrote {out}"])
        return
    with progress.shown("tuning"):
        replaced = providers.convert(model, out, plan, sess_options=settings_of(model, shapes), **dict(options))
    rows = [f"{name:40} {descriptor or '(chosen when run)'}" for name, descriptor in replaced.items()]
    lines = [report.printable(row) for row in rows]
    show(as_json, {"out": str(out), "nodes": replaced}, [*lines, f"wrote {out}"])


@main.command()
@common
@click.option("--against", type=click.Choice(["cpu", "none"]), default="cpu", help="What to compare with.")
@click.option("--seconds", type=click.FloatRange(min=0.05), default=5, show_default=True, help="To measure for.")
def bench(*, model: str, against: str, seconds: float, options: Any, shapes: Any, as_json: bool) -> None:
    """Times MODEL, its runs alternating with those of ONNX Runtime's CPU provider."""
    with progress.shown("tuning"):
        session = providers.session(model, settings_of(model, shapes), **dict(options))
    cpu = None
    if against == "cpu":
        cpu = library.runtime().InferenceSession(model, settings_of(model, shapes), providers=["CPUExecutionProvider"])
    data = timing.alternate(session, cpu, seconds)
    lines = [f"softneuro     {1e3 * data['seconds']:9.3f} ms (median of {data['runs']})"]
    if cpu is not None:
        lines.append(f"CPU provider  {1e3 * data['cpu_seconds']:9.3f} ms")
        lines.append(f"{data['speedup']:.2f} times as fast, relative error {data['error']:.1e}")
    show(as_json, data, lines)


@main.command()
@common
def explain(*, model: str, options: Any, shapes: Any, as_json: bool) -> None:
    """Tells what of MODEL runs where, with which routines, and why."""
    with progress.shown("tuning"):
        session = providers.session(model, settings_of(model, shapes), **dict(options))
    show(as_json, summary(session), report.text_lines(report.events(session)))


@main.command()
@common
def sparsity(*, model: str, options: Any, shapes: Any, as_json: bool) -> None:
    """Tells how many zeros MODEL's weights have, in which patterns, and what they gain.

    With -O tune=cached nothing is measured, with tune=off only zeros are told.
    """
    measured = Measured()
    if dict(options).get("tune") != "off":
        with progress.shown("tuning"):
            session = providers.session(model, settings_of(model, shapes), **dict(options))
        for event in report.events(session):
            if event["event"] == "prepared" and "layers" in event:
                measured.add(event["dense_s"], event["best_s"], event["layers"])
    found = measured.report(zeros.layers(model))
    show(as_json, found.as_dict(), str(found).split("\n"))


main.add_command(cli_budget.calibrate)
main.add_command(cli_budget.tune)
