"""Commands that tune for this machine, and spend a budget of accuracy on that."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from softneuro import providers
from softneuro.providers import progress, report, tune_within
from softneuro.providers.calibrate import METHOD
from softneuro.providers.cli_common import common, replaced, settings_of, show, summary

_METHOD = click.option(
    "--method", default=METHOD, show_default=True, help="min_max, moving_average, percentile:P, mse or entropy."
)
_BATCHES = click.option(
    "--num-batches", type=click.IntRange(min=1), default=32, show_default=True, help="Batches of the data to take."
)
_DATA = "An .npz file of arrays by input's name, or a folder of test_data_set_*."


@click.command()
@common
@click.option("--data", required=True, type=click.Path(exists=True), help=_DATA)
@_METHOD
@_BATCHES
@click.option("-o", "--out", default="ranges.txt", show_default=True, type=click.Path(dir_okay=False), help="To write.")
def calibrate(
    *, model: str, data: str, method: str, num_batches: int, out: str, options: Any, shapes: Any, as_json: bool
) -> None:
    """Writes the ranges of MODEL's values on data, and what roundings do to its outputs.

    With -O calibration=FILE and -O max_error=E, other commands may store values in bytes.
    """
    done = providers.calibrate(
        model,
        data,
        out,
        num_batches=num_batches,
        method=method,
        options=dict(options),
        sess_options=settings_of(model, shapes),
    )
    show(as_json, asdict(done), [f"{done.batches} batch(es), {done.regions} region(s): wrote {done.path}"])


@click.command()
@common
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), help="Model to write.")
@click.option("--data", type=click.Path(exists=True), help=f"{_DATA} With --max-error.")
@click.option("--max-error", type=float, help="Relative L2 error that outputs may have, proven on held-back data.")
@_METHOD
@_BATCHES
@click.option("--ranges", type=click.Path(dir_okay=False), help="File of ranges to write.")
@click.option("--embed", is_flag=True, help="Keep everything in the one file, which loads more slowly.")
@click.option("--no-packed", is_flag=True, help="Leave packed weights out: a smaller file, packed when loaded.")
@click.option("--force", is_flag=True, help="Replace OUT.")
def tune(
    *,
    model: str,
    out: str,
    data: str | None,
    max_error: float | None,
    method: str,
    num_batches: int,
    ranges: str | None,
    options: Any,
    shapes: Any,
    embed: bool,
    no_packed: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Tunes MODEL for this machine and writes OUT, which starts without tuning.

    Programs load it with the provider, as any model. Only shapes that are fixed can be tuned ahead: see --shape.

    With --data and --max-error, layers may compute with bytes where that is faster and outputs err by no more.
    """
    if (data is None) != (max_error is None):
        raise click.UsageError("--data and --max-error are given together: the one proves the other")
    if Path(out).exists() and not force:
        raise click.ClickException(f"{out} exists; --force replaces it")
    settings = settings_of(model, shapes)
    settings.add_session_config_entry("ep.context_embed_mode", "1" if embed else "0")
    settings.add_session_config_entry("softneuro.context_packed", "0" if no_packed else "1")
    if data is not None:
        with replaced(out):
            tuned = providers.tune(
                model,
                data,
                max_error=max_error,
                num_batches=num_batches,
                method=method,
                calibration=ranges,
                out=out,
                options=dict(options),
                sess_options=settings,
            )
        bought: dict[str, Any] = {"chosen": asdict(tuned.chosen), "trials": [asdict(trial) for trial in tuned.trials]}
        bought |= {"calibration": tuned.calibration, "options": tuned.options}
        show(as_json, {"out": out, **bought}, [*str(tuned).split("\n"), f"wrote {out}"])
        return
    with replaced(out), progress.shown("tuning"):
        session = tune_within.compiling(model, out, settings, dict(options))
    data_shown = {"out": str(out), **summary(session)}
    if not data_shown["regions"]:
        click.echo("nothing could be tuned ahead, since shapes are open: fix them with --shape", err=True)
    show(as_json, data_shown, [*report.text_lines(report.events(session)), f"wrote {out}"])
