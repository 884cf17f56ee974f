"""The other ways to run a torch model on this CPU, each as a callable that takes and returns a torch tensor."""

from __future__ import annotations

import copy
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

Runner = Callable[[torch.Tensor], torch.Tensor]


def eager(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """PyTorch as it is."""
    return model


def inductor(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """TorchInductor with freezing, which prepacks weights."""
    from torch._inductor import config

    compiled: Runner = torch.compile(copy.deepcopy(model), backend="inductor")
    with config.patch(freezing=True):  # for its compilation alone: Dynamo treats weights otherwise then, for all
        compiled(example)
    return compiled


def softneuro(model: torch.nn.Module, example: torch.Tensor, threads: int, **options: str) -> Runner:
    """This project."""
    compiled: Runner = torch.compile(copy.deepcopy(model), backend="softneuro", options=dict(options))
    compiled(example)
    return compiled


def softneuro_float32(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """This project on the same model in float32."""
    run = softneuro(copy.deepcopy(model).float(), example.float(), threads)
    wide = example.float()
    return lambda _: run(wide)


def softneuro_exported(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """This project on a program of torch.export."""
    from softneuro import torch_backend

    loaded: Runner = torch_backend.load(torch.export.export(copy.deepcopy(model), (example,)))
    loaded(example)
    return loaded


def _onnx_file(model: torch.nn.Module, example: torch.Tensor, folder: str) -> str:
    path = str(Path(folder) / "model.onnx")
    torch.onnx.export(model, (example,), path, dynamo=True, verbose=False)
    return path


def session_options(threads: int) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A pool that spins between runs would slow whoever is measured next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def session_runner(session: Any) -> Runner:
    name = session.get_inputs()[0].name
    return lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])


def onnxruntime(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """ONNX Runtime's CPU provider."""
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        path = _onnx_file(model, example, folder)
        return session_runner(ort.InferenceSession(path, session_options(threads), providers=["CPUExecutionProvider"]))


def softneuro_onnx(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """This project through ONNX Runtime."""
    from softneuro import providers

    with tempfile.TemporaryDirectory() as folder:
        return session_runner(providers.session(_onnx_file(model, example, folder), session_options(threads)))


def openvino_runner(path: str, threads: int) -> Runner:
    """Runs an ONNX file. What is not quantized is computed in float32."""
    import openvino as ov

    config: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
    }
    request = ov.Core().compile_model(ov.Core().read_model(path), "CPU", config).create_infer_request()
    return lambda x: torch.from_numpy(np.array(request.infer([x.numpy()])[0], copy=True))


def openvino(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """OpenVINO's CPU device in float32."""
    with tempfile.TemporaryDirectory() as folder:
        return openvino_runner(_onnx_file(model, example, folder), threads)


def ncnn(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """ncnn, converted by pnnx, in float32."""
    import ncnn as ncnn_module
    import pnnx

    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "model"
        torch.jit.trace(model, example, check_trace=False).save(f"{base}.pt")  # type: ignore[no-untyped-call]
        shape = ",".join(map(str, example.shape))
        # pnnx.export would do this, and print hundreds of lines.
        command = [pnnx.EXEC_PATH, f"{base}.pt", f"inputshape=[{shape}]f32", "fp16=0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pnnx: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        net = ncnn_module.Net()
        net.opt.num_threads = threads
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        net.load_param(f"{base}.ncnn.param")
        net.load_model(f"{base}.ncnn.bin")

    def run(x: torch.Tensor) -> torch.Tensor:
        with net.create_extractor() as extractor:
            extractor.input("in0", ncnn_module.Mat(x.squeeze(0).numpy()))
            _, out = extractor.extract("out0")
            return torch.from_numpy(np.array(out)).unsqueeze(0)

    return run


PEERS: dict[str, Callable[..., Runner]] = {
    "eager": eager,
    "inductor": inductor,
    "softneuro": softneuro,
    "softneuro_float32": softneuro_float32,
    "softneuro_exported": softneuro_exported,
    "softneuro_onnx": softneuro_onnx,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "ncnn": ncnn,
}


def runner(peer: str, model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """Makes the runner of a peer's name, or of softneuro with options: `softneuro:max_memory=0.5:schemas=float32`."""
    name, *options = peer.split(":")
    return PEERS[name](model, example, threads, **dict(option.split("=", 1) for option in options))
