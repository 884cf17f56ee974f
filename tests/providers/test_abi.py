"""Our declarations of the runtime's interface, against the runtime that is installed."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import onnxruntime
import pytest

from softneuro import providers

ABI = Path(__file__).parents[2] / "providers" / "ort" / "abi"
SLOT = re.compile(r"SN_SLOT\((\w+), (\w+), (\d+), (\d+), ")
NEWEST = 24  # newest_api in abi.h


def slots(table: str) -> dict[str, tuple[int, int]]:
    """name -> (slot, minor version that added it)"""
    rows = SLOT.findall((ABI / "abi_slots.inc").read_text())
    return {name: (int(slot), int(since)) for owner, name, slot, since in rows if owner == table}


class Base(ctypes.Structure):
    _fields_ = [
        ("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
        ("version", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    ]


@pytest.fixture(scope="module")
def base() -> Base:
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = ctypes.CDLL(str(next(folder.glob("libonnxruntime.so*"))))
    library.OrtGetApiBase.restype = ctypes.POINTER(Base)
    return library.OrtGetApiBase().contents


def function(table: int, slot: int, result: object, *parameters: object) -> ctypes._CFuncPtr:
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[slot]
    return ctypes.CFUNCTYPE(result, *parameters)(address)


def test_newest_api_is_the_one_tested() -> None:
    assert f"newest_api = {NEWEST};" in (ABI / "abi.h").read_text()
    for table in ("OrtApi", "OrtEpApi", "OrtModelEditorApi"):
        assert slots(table)
        assert all(since <= 25 for _, since in slots(table).values())


def test_statuses(base: Base) -> None:
    api, at = base.get_api(NEWEST), slots("OrtApi")
    assert base.version().decode() == onnxruntime.__version__
    create = function(api, at["CreateStatus"][0], ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    code = function(api, at["GetErrorCode"][0], ctypes.c_int, ctypes.c_void_p)
    message = function(api, at["GetErrorMessage"][0], ctypes.c_char_p, ctypes.c_void_p)
    release = function(api, at["ReleaseStatus"][0], None, ctypes.c_void_p)
    status = create(2, b"a message")
    assert (code(status), message(status)) == (2, b"a message")
    release(status)


def test_shapes_and_pairs(base: Base) -> None:
    api, at = base.get_api(NEWEST), slots("OrtApi")
    pointer = ctypes.POINTER(ctypes.c_void_p)
    info = ctypes.c_void_p()
    assert not function(api, at["CreateTensorTypeAndShapeInfo"][0], ctypes.c_void_p, pointer)(ctypes.byref(info))
    dims = (ctypes.c_int64 * 3)(4, -1, 5)
    array, size = ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t
    assert not function(api, at["SetDimensions"][0], ctypes.c_void_p, ctypes.c_void_p, array, size)(info, dims, 3)
    count, found = size(), (ctypes.c_int64 * 3)()
    counted = function(api, at["GetDimensionsCount"][0], ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(size))
    assert not counted(info, ctypes.byref(count))
    assert count.value == 3
    assert not function(api, at["GetDimensions"][0], ctypes.c_void_p, ctypes.c_void_p, array, size)(info, found, 3)
    assert list(found) == [4, -1, 5]
    has = function(api, at["TensorTypeAndShape_HasShape"][0], ctypes.c_bool, ctypes.c_void_p)
    assert has(info)
    function(api, at["ReleaseTensorTypeAndShapeInfo"][0], None, ctypes.c_void_p)(info)

    pairs = ctypes.c_void_p()
    function(api, at["CreateKeyValuePairs"][0], None, pointer)(ctypes.byref(pairs))
    add = function(api, at["AddKeyValuePair"][0], None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    add(pairs, b"key", b"value")
    keys, values = ctypes.POINTER(ctypes.c_char_p)(), ctypes.POINTER(ctypes.c_char_p)()
    lists = ctypes.POINTER(ctypes.POINTER(ctypes.c_char_p))
    listed = function(api, at["GetKeyValuePairs"][0], None, ctypes.c_void_p, lists, lists, ctypes.POINTER(size))
    listed(pairs, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
    assert (count.value, keys[0], values[0]) == (1, b"key", b"value")
    function(api, at["ReleaseKeyValuePairs"][0], None, ctypes.c_void_p)(pairs)


def test_every_slot_holds_a_function(base: Base) -> None:
    api = base.get_api(NEWEST)
    tables = {
        "OrtApi": api,
        "OrtEpApi": function(api, slots("OrtApi")["GetEpApi"][0], ctypes.c_void_p)(),
        "OrtModelEditorApi": function(api, slots("OrtApi")["GetModelEditorApi"][0], ctypes.c_void_p)(),
    }
    for name, table in tables.items():
        for slot, _ in slots(name).values():
            assert ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[slot]


def test_library_shows_its_entry_points_only() -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", providers.get_library_path()], capture_output=True, text=True, check=True
    )
    shown = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert shown == {"CreateEpFactories", "ReleaseEpFactory", "RegisterCustomOps"}


def test_library_needs_no_runtime_and_no_cxx_library() -> None:
    listing = subprocess.run(["ldd", providers.get_library_path()], capture_output=True, text=True, check=True)
    assert not re.search(r"onnxruntime|libstdc|libgcc", listing.stdout)
