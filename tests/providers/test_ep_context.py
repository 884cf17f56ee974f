"""Compiled models: saved with their plans and packed weights, loaded without tuning, refused if they are damaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from softneuro import _C, providers
from softneuro.providers.report import events
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, reasons
from tests.providers.test_sessions import f32, network

HEAD, FORMAT_AT, SIZE_AT, HASH_AT, HASH_SIZE = 64, 8, 16, 24, 32  # of a payload: payload.cc


def compiling(
    model: bytes, folder: Path, embed: bool = True, entries: dict[str, str] | None = None, **options: Any
) -> tuple[Path, Any]:
    source, result = folder / "model.onnx", folder / "saved.onnx"
    result.unlink(missing_ok=True)
    source.write_bytes(model)
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", str(result))
    settings.add_session_config_entry("ep.context_embed_mode", "01"[embed])
    for key, value in (entries or {}).items():
        settings.add_session_config_entry(key, value)
    return result, providers.session(source, settings, **{"tune": "off", "min_region_size": 1, **options})


def compiled(*arguments: Any, **options: Any) -> Path:
    return compiling(*arguments, **options)[0]


def load(path: Path | bytes, **options: Any) -> Any:
    return providers.session(path, **{"tune": "off", **options})


def layers(session: Any) -> list[str]:
    return [layer["descriptor"] for e in events(session) for layer in e.get("layers", [])]


@pytest.mark.parametrize("embed", [True, False])
def test_saved_and_loaded(tmp_path: Path, embed: bool) -> None:
    model = network(1, 16)
    path = compiled(model, tmp_path, embed)
    (node,) = onnx.load(path).graph.node
    assert (node.op_type, node.domain) == ("EPContext", "com.microsoft")
    assert len(list(tmp_path.glob("*.bin"))) == (0 if embed else 1)
    ours, cpu = load(path), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))
    assert not reasons(ours)
    assert layers(ours)


def test_weights_that_are_not_packed(tmp_path: Path) -> None:
    """They are in the compiled model all the same, and outlive what it was read from."""
    model = network(1, 16)
    _, free = compiling(model, tmp_path)
    unpacked = next(one.replace("packed=1", "packed=0") for one in layers(free) if "packed=1" in one)
    path, first = compiling(model, tmp_path, fixed=f"*={unpacked}")
    assert any("packed=0" in descriptor for descriptor in layers(first))
    ours, cpu = load(path.read_bytes()), cpu_session(model)
    assert layers(ours) == layers(first)
    for session in (first, ours):
        check_same(session, cpu, random_feeds(cpu))


def test_a_saved_plan_gives_way_to_what_is_asked(tmp_path: Path) -> None:
    model, naive = network(1, 16), "conv2d/cpu:float32:nchw/naive"
    path, first = compiling(model, tmp_path)
    assert naive not in layers(first)
    ours, cpu = load(path, fixed=f"*={naive}"), cpu_session(model)
    assert naive in layers(ours)
    check_same(ours, cpu, random_feeds(cpu))
    assert layers(load(path)) == layers(first)


def test_plan_comes_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuned once; another cache folder knows nothing of it, and tune=off alone would choose by rules."""
    model = network(1, 16)
    path, first = compiling(model, tmp_path, tune="profile", time_budget_s=0.5, never_worse=False)
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "other"))
    ours = load(path, tune="profile")
    assert layers(ours) == layers(first)
    assert not any(event.get("measured") for event in events(ours))
    check_same(ours, cpu_session(model), random_feeds(ours))


def test_packed_weights_may_be_left_out(tmp_path: Path) -> None:
    model = network(1, 16)
    sizes = []
    for packed in "01":
        path = compiled(model, tmp_path, entries={"softneuro.context_packed": packed})
        sizes.append(path.stat().st_size)
        check_same(load(path), cpu_session(model), random_feeds(cpu_session(model)))
    assert sizes[1] > sizes[0]


def forged(whole: bytes, body: bytes) -> bytes:
    """With the size and the checksum of what it holds now."""
    size = (HEAD + len(body)).to_bytes(8, "little")
    return whole[:SIZE_AT] + size + bytes_hash(body) + whole[HASH_AT + HASH_SIZE : HEAD] + body


@pytest.fixture
def stages(tmp_path: Path) -> tuple[bytes, dict[str, Any], int]:
    """A convolution, the options that give it a plan of three layers, and the bytes that these layers pack."""
    weight = f32(32, 32, 3, 3)
    problem = ("conv2d", {"padding": [1, 1, 1, 1]}, {"weight": weight}, [(1, 32, 12, 12)])
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    model = make_model([node], {"x": [1, 32, 12, 12]}, {"y": None}, {"w": weight})
    plan = tmp_path / "plan.txt"
    providers.session(model, tune="off", min_region_size=1, plan=plan)
    text = plan.read_text()
    ((schema, chosen),) = re.findall(r"conv2d/([^/ ]+)/(\S+)", text)
    stages = f"conv2d/{schema}/winograd_stages_"
    descriptor = next(d for d in _C.testing.accepting(*problem) if d.startswith(stages))
    plan.write_text(text.replace(f"conv2d/{schema}/{chosen}", descriptor))
    # Two runs tell that the plan's error is bearable: without them, exact routines would take its place.
    return (
        model,
        {"plan": plan, "tune": "profile", "never_worse": False},
        _C.testing.packed_bytes(*problem, descriptor)[1],
    )


def test_packings_of_childnets_are_kept(tmp_path: Path, stages: tuple[bytes, dict[str, Any], int]) -> None:
    model, options, packed = stages
    path, first = compiling(model, tmp_path, **options)
    assert "/winograd_stages_" in layers(first)[0]
    saved, attribute = payload_of(path)
    whole = attribute.s
    assert len(whole) > packed > 30 * 32 * 32 * 4
    cpu = cpu_session(model)
    check_same(load(path), cpu, random_feeds(cpu))
    del first  # sessions of equal weights share what is packed
    # They are at the end, and nobody packs again: without weights nothing is left of the image.
    attribute.s = forged(whole, whole[HEAD : -1 - packed] + bytes(packed) + whole[-1:])
    (result,) = load(saved.SerializeToString()).run(None, random_feeds(cpu))
    assert not result.any()


def test_packings_of_other_sections_are_not_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], stages: tuple[bytes, dict[str, Any], int]
) -> None:
    model, options, _ = stages
    saved, attribute = payload_of(compiled(model, tmp_path, **options))
    whole, cpu = attribute.s, cpu_session(model)
    attribute.s = forged(whole, whole[HEAD:].replace(b"1.weights", b"1.weighty"))
    check_same(load(saved.SerializeToString()), cpu, random_feeds(cpu))
    assert "has '1.weighty:float32:" in capfd.readouterr().err
    text = len(b"float32").to_bytes(8, "little")
    attribute.s = forged(whole, whole[HEAD:].replace(text + b"float32", text + b"float99"))
    with pytest.raises(Exception, match="saved region is damaged: a packing has elements of type 'float99'"):
        load(saved.SerializeToString())
    attribute.s = whole[:FORMAT_AT] + (1).to_bytes(8, "little") + whole[SIZE_AT:]
    with pytest.raises(Exception, match=r"saved region has format 1, this version reads 3.*make the model anew"):
        load(saved.SerializeToString())


def test_open_shapes(tmp_path: Path) -> None:
    model = network()
    ours, cpu = load(compiled(model, tmp_path)), cpu_session(model)
    for n, s in [(1, 8), (2, 11), (1, 8)]:
        check_same(ours, cpu, random_feeds(cpu, {"n": n, "s": s}))
    assert not reasons(ours)


def test_several_regions_and_a_prefix(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Compress", ["a", "all"], ["b"], axis=1),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Shape", ["c"], ["y2"]),
        helper.make_node("Sub", ["c", "a"], ["y1"]),
    ]
    model = make_model(nodes, {"x": [1, 3, 6, 6]}, {"y1": None}, {"w": f32(4, 3, 3, 3), "all": np.ones(4, bool)})
    path = compiled(model, tmp_path, False, {"ep.context_node_name_prefix": "mine_"})
    saved = [node for node in onnx.load(path).graph.node if node.op_type == "EPContext"]
    names = [attribute.s for node in saved for attribute in node.attribute if attribute.name == "partition_name"]
    assert names == [b"mine_softneuro_0", b"mine_softneuro_1"]
    ours, cpu = load(path), cpu_session(model)
    check_same(ours, cpu, random_feeds(cpu))


def test_model_compiler(tmp_path: Path) -> None:
    model = network(1, 16)
    settings = onnxruntime.SessionOptions()
    providers.register()
    settings.add_provider_for_devices(providers.library.devices(), {"tune": "off"})
    compiler = onnxruntime.ModelCompiler(settings, model, embed_compiled_data_into_model=True)
    result = compiler.compile_to_bytes()
    check_same(load(result), cpu_session(model), random_feeds(cpu_session(model)))


def payload_of(path: Path) -> tuple[onnx.ModelProto, Any]:
    model = onnx.load(path)
    (node,) = model.graph.node
    return model, next(attribute for attribute in node.attribute if attribute.name == "ep_cache_context")


def bytes_hash(data: bytes) -> bytes:
    """csrc/base/hash.cc"""
    mask, odd = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def rotl(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & mask

    def finish(x: int) -> int:
        for _ in range(2):
            x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & mask
        return x ^ x >> 32

    chains = [(i + 1) * odd & mask for i in range(8)]
    for index, at in enumerate(range(0, len(data), 8)):
        word = int.from_bytes(data[at : at + 8], "little")
        chains[index % 8] = rotl((chains[index % 8] ^ word) * odd & mask, 31)
    low, high = len(data), ~len(data) & mask
    for chain in chains:
        low, high = finish(low ^ chain), finish(high + rotl(chain, 23) & mask)
    return f"{low:016x}{high:016x}".encode()


def small(folder: Path) -> tuple[onnx.ModelProto, Any, bytes]:
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    path = compiled(make_model(nodes, {"x": [1, 2, 5, 5]}, {"y": None}, {"w": f32(3, 2, 3, 3)}), folder)
    model, attribute = payload_of(path)
    return model, attribute, attribute.s


def test_damage_is_noticed(tmp_path: Path) -> None:
    model, attribute, whole = small(tmp_path)
    random = np.random.default_rng(0)
    broken = [b"", whole[:7], whole[:HEAD], whole[:-1], whole[: len(whole) // 2]]
    for at in [*range(0, HEAD - 8, 3), *random.integers(HEAD, len(whole), 25)]:
        broken.append(whole[:at] + bytes([whole[at] ^ 1 << int(random.integers(8))]) + whole[at + 1 :])
    for payload in broken:
        attribute.s = payload
        with pytest.raises(Exception, match=r"saved region|ep_cache_context"):
            load(model.SerializeToString())
    attribute.s = whole
    load(model.SerializeToString())


def test_forged_payloads_lead_nowhere(tmp_path: Path) -> None:
    """With a right checksum: refused or run, never a crash."""
    model, attribute, whole = small(tmp_path)
    assert whole[HASH_AT : HASH_AT + HASH_SIZE] == bytes_hash(whole[HEAD:])
    random = np.random.default_rng(1)
    refused = 0
    feeds = {"x": f32(1, 2, 5, 5)}
    for trial in range(150):
        body = bytearray(whole[HEAD:])
        at = 8 * int(random.integers(len(body) // 8))
        values = [0, 1, 2, 7, 1 << 44, (1 << 62) + 1, (1 << 64) - 1, int(random.integers(1 << 62))]
        if trial % 3:
            body[at : at + 8] = values[int(random.integers(len(values)))].to_bytes(8, "little")
        else:
            del body[at : at + 8 * int(random.integers(1, 4))]
        attribute.s = forged(whole, bytes(body))
        try:
            load(model.SerializeToString()).run(None, feeds)
        except Exception:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("pad", [2**10, 2**26, 2**31 - 1, 2**40])
def test_forged_sizes_are_refused_before_any_work(tmp_path: Path, pad: int) -> None:
    """The payload's ops make results that the model does not declare: the host is not asked to run them either."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[7, 7, 7, 7]), helper.make_node("Relu", ["a"], ["y"])]
    path = compiled(make_model(nodes, {"x": [1, 2, 5, 5]}, {"y": None}, {"w": f32(3, 2, 3, 3)}), tmp_path)
    model, attribute = payload_of(path)
    whole, pads = attribute.s, (7).to_bytes(8, "little") * 4
    body = whole[HEAD:].replace(pads, pad.to_bytes(8, "little") + pads[8:])
    attribute.s = forged(whole, body)
    with pytest.raises(Exception, match=r"saved region is damaged.*(declares|padding)"):
        load(model.SerializeToString())


def test_payload_beside_the_model_only(tmp_path: Path) -> None:
    path = compiled(network(1, 16), tmp_path, embed=False)
    model, attribute = payload_of(path)
    for name in ("../secret", "/etc/passwd", "", ".."):
        attribute.s = name.encode()
        onnx.save(model, path)
        with pytest.raises(Exception, match="beside the model"):
            load(path)
    attribute.s = b"gone.bin"
    onnx.save(model, path)
    with pytest.raises(Exception, match=r"gone\.bin.*cannot be read"):
        load(path)


def test_another_device_or_thread_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = network(1, 16)
    path = compiled(model, tmp_path, threads=1)
    ours = load(path, threads=2)
    check_same(ours, cpu_session(model), random_feeds(ours))
    assert "tuned anew" in capfd.readouterr().err
    with pytest.raises(Exception, match=r"made for 1 thread.*strict=0"):
        load(path, threads=2, strict=True)
    saved, attribute = payload_of(path)
    start = attribute.s.index(b"0.1.0 ")
    body = bytearray(attribute.s[HEAD:])
    body[start - HEAD : start - HEAD + 5] = b"0.0.9"
    attribute.s = forged(attribute.s, bytes(body))
    with pytest.raises(Exception, match="another device or by another version"):
        load(saved.SerializeToString(), threads=1, strict=True)
    ours = load(saved.SerializeToString(), threads=1)
    check_same(ours, cpu_session(model), random_feeds(ours))
