"""The other ways to run a torch model on this CPU, each as a callable that takes and returns torch tensors.

A model is called with one tensor, or with the tensors of its keyword arguments by name.
"""

from __future__ import annotations

import copy
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

Example: TypeAlias = torch.Tensor | Mapping[str, torch.Tensor]
Runner = Callable[..., Any]


def call(run: Runner, example: Example) -> Any:
    return run(**example) if isinstance(example, Mapping) else run(example)


def split(example: Example) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """Positional and keyword arguments."""
    return ((), dict(example)) if isinstance(example, Mapping) else ((example,), {})


def eager(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """PyTorch as it is."""
    return model


def inductor(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """TorchInductor with freezing, which prepacks weights."""
    from torch._inductor import config

    compiled: Runner = torch.compile(copy.deepcopy(model), backend="inductor")
    with config.patch(freezing=True):  # for its compilation alone: Dynamo treats weights otherwise then, for all
        call(compiled, example)
    return compiled


def inductor_unfrozen(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """TorchInductor as torch.compile has it."""
    compiled: Runner = torch.compile(copy.deepcopy(model), backend="inductor")
    call(compiled, example)
    return compiled


def softneuro(model: torch.nn.Module, example: Example, threads: int, **options: str) -> Runner:
    """This project."""
    compiled: Runner = torch.compile(copy.deepcopy(model), backend="softneuro", options=dict(options))
    call(compiled, example)
    return compiled


def softneuro_float32(model: torch.nn.Module, example: torch.Tensor, threads: int) -> Runner:
    """This project on the same model in float32."""
    run = softneuro(copy.deepcopy(model).float(), example.float(), threads)
    wide = example.float()
    return lambda _: run(wide)


def softneuro_exported(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """This project on a program of torch.export."""
    from softneuro import torch_backend

    loaded: Runner = torch_backend.load(torch.export.export(copy.deepcopy(model), *split(example)))
    call(loaded, example)
    return loaded


def _onnx_file(model: torch.nn.Module, example: Example, folder: str) -> str:
    path = str(Path(folder) / "model.onnx")
    given, named = split(example)
    torch.onnx.export(model, given, path, kwargs=named, dynamo=True, verbose=False)
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
    return named_runner([entry.name for entry in session.get_inputs()], lambda feeds: session.run(None, feeds))


def named_runner(names: list[str], infer: Callable[[dict[str, Any]], Sequence[Any]]) -> Runner:
    """A runtime's inference as a callable on tensors. An export drops what a model takes and does not read."""

    def run(*given: torch.Tensor, **named: torch.Tensor) -> Any:
        tensors = dict(zip(names, given, strict=True)) if given else named
        results = [torch.from_numpy(array) for array in infer({name: tensors[name].numpy() for name in names})]
        return results if len(results) > 1 else results[0]

    return run


def onnxruntime(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """ONNX Runtime's CPU provider."""
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        path = _onnx_file(model, example, folder)
        return session_runner(ort.InferenceSession(path, session_options(threads), providers=["CPUExecutionProvider"]))


# Families whose fusions ONNX Runtime's optimizer of transformers knows; the others are taken for BERT.
OPTIMIZED_AS = {
    "gpt2": "gpt2",
    "t5": "t5",
    "whisper": "bart",
    "clip_vision_model": "clip",
    "vit": "vit",
    "swin": "swin",
}


def onnxruntime_transformers(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """ONNX Runtime's CPU provider on the file that its own optimizer of transformers makes.

    It fuses more where attention is spelt out, though 1.32 finds attention itself only in CLIP.
    """
    import onnxruntime as ort
    from onnxruntime.transformers import optimizer

    model = copy.deepcopy(model)
    sizes: Any = getattr(model, "config", None)
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation("eager")
    heads = getattr(sizes, "num_attention_heads", 0)
    known = {"num_heads": heads, "hidden_size": sizes.hidden_size} if isinstance(heads, int) and heads else {}
    family = OPTIMIZED_AS.get(getattr(sizes, "model_type", ""), "bert")
    with tempfile.TemporaryDirectory() as folder:
        path = _onnx_file(model, example, folder)
        made = optimizer.optimize_model(path, family, opt_level=0, **known)
        made.save_model_to_file(path + ".optimized", use_external_data_format=True)
        return session_runner(
            ort.InferenceSession(path + ".optimized", session_options(threads), providers=["CPUExecutionProvider"])
        )


def softneuro_onnx(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """This project through ONNX Runtime."""
    from softneuro import providers

    with tempfile.TemporaryDirectory() as folder:
        return session_runner(providers.session(_onnx_file(model, example, folder), session_options(threads)))


def openvino_runner(path: str, threads: int, **more: str) -> Runner:
    """Runs an ONNX file. What is not quantized is computed in float32. `more`: of the device's configuration."""
    import openvino as ov

    config: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        **more,
    }
    compiled = ov.Core().compile_model(ov.Core().read_model(path), "CPU", config)
    request = compiled.create_infer_request()

    def infer(feeds: dict[str, Any]) -> list[Any]:
        results = request.infer(feeds)
        return [np.array(results[output], copy=True) for output in compiled.outputs]

    return named_runner([entry.any_name for entry in compiled.inputs], infer)


def openvino(model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """OpenVINO's CPU device in float32."""
    with tempfile.TemporaryDirectory() as folder:
        exact = {"EXECUTION_MODE_HINT": "ACCURACY", "KV_CACHE_PRECISION": "f32"}
        return openvino_runner(_onnx_file(model, example, folder), threads, **exact)


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
    "inductor_unfrozen": inductor_unfrozen,
    "softneuro": softneuro,
    "softneuro_float32": softneuro_float32,
    "softneuro_exported": softneuro_exported,
    "softneuro_onnx": softneuro_onnx,
    "onnxruntime": onnxruntime,
    "onnxruntime_transformers": onnxruntime_transformers,
    "openvino": openvino,
    "ncnn": ncnn,
}


def runner(peer: str, model: torch.nn.Module, example: Example, threads: int) -> Runner:
    """Makes the runner of a peer's name, or of softneuro with options: `softneuro:max_memory=0.5:schemas=float32`."""
    name, *options = peer.split(":")
    return PEERS[name](model, example, threads, **dict(option.split("=", 1) for option in options))
