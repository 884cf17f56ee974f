"""Networks quantized by ONNX Runtime: softneuro against others on the same file, in interleaved rounds in one process.

Files are in QDQ form with unsigned activations and signed weights per channel, calibrated on a few inputs at random.
Figures are median milliseconds, measured as in benchmarks.networks. In brackets: how many times as fast softneuro on
the quantized file is; for float32 that is softneuro itself on the model before it was quantized. In integers: the share
of multiply-adds that the plan does so. Error: relative L2 to ONNX Runtime's CPU provider on the same file.

python -m benchmarks.quantized resnet50 --folder ~/quantized
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from rich.console import Console
from rich.progress import Progress

from benchmarks import models, record
from benchmarks.networks import measure, set_up
from benchmarks.peers import Runner, openvino_runner, session_options, session_runner
from benchmarks.tables import figures
from softneuro import providers
from softneuro.error_measure import relative_error
from softneuro.providers.report import events

NETWORKS = [
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "squeezenet1_1",
    "googlenet",
    "inception_v3",
    "vgg16",
]
BATCHES = 4  # of calibration


class Calibration(quantization.CalibrationDataReader):
    """Inputs as networks are trained on: normalised."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(0)
        self.batches = iter([{name: random.standard_normal(shape).astype(np.float32)} for _ in range(BATCHES)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.batches, None)


def make_files(network: str, size: int, folder: Path) -> tuple[str, str, torch.Tensor]:
    """The float model, the quantized one, and an input. Files that are there already are taken as they are."""
    model, example = models.build(network, size)
    base = f"{network}-{example.shape[-1]}"
    plain, quantized = folder / f"{base}.onnx", folder / f"{base}-qdq.onnx"
    if not quantized.exists():
        with tempfile.TemporaryDirectory() as scratch:
            exported = str(Path(scratch) / "model.onnx")
            torch.onnx.export(model, (example,), exported, dynamo=True, external_data=False, verbose=False)
            # Normalisations are folded into convolutions. Shapes are fixed and need no inference by symbols.
            quant_pre_process(exported, str(plain), skip_symbolic_shape=True)
            name = onnx.load(plain).graph.input[0].name
            quantization.quantize_static(
                str(plain), str(quantized), Calibration(name, tuple(example.shape)), per_channel=True
            )
    return str(plain), str(quantized), example


def multiply_adds(path: str) -> dict[str, int]:
    """By the name of a convolution or product."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.value_info, *graph.output]}
    weights = {i.name: list(i.dims) for i in graph.initializer}
    work = {}
    for node in graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            continue
        weight = weights.get(node.input[1])
        # Each element of a result takes as many as there are weights for its channel.
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        out = shapes[node.output[0]]
        channels = weight[0] if weight and (node.op_type == "Conv" or turned) else out[-1]
        if weight:
            work[node.name] = int(np.prod(out)) * int(np.prod(weight)) // channels
    return work


def share_in_integers(session: Any, work: dict[str, int]) -> float:
    """The share of a session's multiply-adds that routines do which read bytes."""
    # The last plan of each region counts, if it won.
    prepared = {event["region"]: event for event in events(session) if event["event"] == "prepared"}
    plans = [event.get("layers", []) for event in prepared.values() if not event["host"]]
    rows = [row for plan in plans for row in plan]
    done = 0
    for at, row in enumerate(rows):
        if row["name"] not in work or row["type"] == "quantize":
            continue
        # A layer that is computed together with others has its routine at the last of them.
        chosen = next((r["descriptor"] for r in rows[at:] if r["descriptor"]), "")
        done += work[row["name"]] * (":qint8:" in chosen.partition("->")[0])
    return done / max(sum(work.values()), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="per network (default: %(default)s)")
    parser.add_argument("--size", type=int, default=0, help="of images (default: what a network was made for)")
    parser.add_argument("--folder", type=Path, help="keep the files there, and take those that are there already")
    record.add_option(parser)
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)
    torch.set_num_threads(arguments.threads)
    console = Console(width=max(Console().width, 160))
    header = ["network", "softneuro ms", "onnxruntime ms", "openvino ms", "float32 ms", "in integers", "error"]
    rows = []
    with tempfile.TemporaryDirectory() as scratch, Progress(console=console, transient=True) as progress:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        task = progress.add_task("networks", total=len(arguments.networks))
        for network in arguments.networks:
            progress.update(task, description=network)
            plain, quantized, example = make_files(network, arguments.size, folder)
            sessions: list[Any] = []

            def own(path: str, kept: list[Any] = sessions) -> Runner:
                kept.append(providers.session(path, session_options(arguments.threads)))
                return session_runner(kept[-1])

            def cpu(path: str) -> Runner:
                settings = session_options(arguments.threads)
                return session_runner(onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"]))

            ways: dict[str, Callable[[], Runner]] = {
                "softneuro": lambda path=quantized: own(path),
                "onnxruntime": lambda path=quantized: cpu(path),
                "openvino": lambda path=quantized: openvino_runner(path, arguments.threads),
                "float32": lambda path=plain: own(path),
            }
            runners = set_up(ways, example, console)
            progress.advance(task)
            if "softneuro" not in runners:
                continue
            medians = measure(runners, example, arguments.seconds)
            share = share_in_integers(sessions[0], multiply_adds(plain))
            error = relative_error(runners["softneuro"][0](example), runners["onnxruntime"][0](example))
            ours = medians["softneuro"]
            others = (medians.get(way) for way in ("onnxruntime", "openvino", "float32"))
            cells = [f"{ms:.2f} ({ms / ours:.2f})" if ms else "-" for ms in others]
            rows.append([network, f"{ours:.2f}", *cells, f"{100 * share:.0f} %", f"{error:.1e}"])
    console.print(figures(f"batch 1, {arguments.threads} threads", header, rows))
    if arguments.record:
        record.write("quantized", sys.argv[1:], header, rows)


if __name__ == "__main__":
    main()
