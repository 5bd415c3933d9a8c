"""DLPack capsules: those of NumPy are read, NumPy reads what is exported, and nothing leaks."""

import gc
import weakref

import numpy as np
import pytest

from warploom.base import dtypes
from warploom.runtime import dlpack
from warploom.runtime.arrays import read


class Plain:
    """Another library's array: it speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Held:
    """Memory with an owner whose end can be seen."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Producer(Plain):
    """Exports memory of an owner by our own capsule."""

    def __init__(self, owner: Held) -> None:
        super().__init__(owner.array)
        self.owner = owner

    def __dlpack__(self, **_: object) -> object:
        return export(self.array, self.owner)


class Exported:
    """What consumers of a capsule see."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0


NAMES = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]


@pytest.mark.parametrize("name", NAMES)
def test_a_capsule_of_numpy_is_read(name: str) -> None:
    base = np.arange(24).astype(dtypes.BY_NAME[name].numpy).reshape(4, 6)
    array = base[1:, ::2]
    view = read(Plain(array), "x")
    assert (view.dtype.name, view.shape, view.strides) == (name, (3, 3), (6, 2))
    assert view.address == array.ctypes.data
    assert view.place == "sim"
    assert view.host is not None
    assert np.array_equal(view.host, array)
    assert np.shares_memory(view.host, base)


def export(array: np.ndarray, owner: object) -> object:
    found = dtypes.from_numpy(array.dtype)
    assert found is not None
    strides = tuple(s // array.itemsize for s in array.strides)
    return dlpack.export(owner, array.ctypes.data, array.shape, strides, found, (dlpack.CPU, 0))


@pytest.mark.parametrize("name", NAMES)
def test_numpy_reads_what_is_exported_and_lets_go(name: str) -> None:
    array = np.arange(24).astype(dtypes.BY_NAME[name].numpy).reshape(4, 6)[:, 1:5]
    owner = Held(array)
    gone = weakref.ref(owner)
    seen = np.from_dlpack(Exported(export(array, owner)))
    assert np.array_equal(seen, array)
    assert seen.dtype == array.dtype
    del owner
    gc.collect()
    assert gone() is not None
    del seen
    gc.collect()
    assert gone() is None
    assert not dlpack._exported


def test_a_capsule_that_nobody_takes_lets_go() -> None:
    owner = Held(np.zeros(3, np.float32))
    gone = weakref.ref(owner)
    capsule = export(owner.array, owner)
    del owner, capsule
    gc.collect()
    assert gone() is None


def test_a_used_capsule_is_refused() -> None:
    capsule = np.zeros(3, np.float32).__dlpack__()
    np.from_dlpack(Exported(capsule))
    with pytest.raises(ValueError, match="fresh capsule"):
        dlpack.describe(capsule)


@pytest.mark.parametrize(("name", "code"), [("bf16", 4), ("f8e4m3", 10), ("f8e5m2", 12)])
def test_types_that_numpy_lacks_are_exported_as_such(name: str, code: int) -> None:
    array = np.arange(4).astype(dtypes.BY_NAME[name].numpy)
    capsule = export(array, array)
    described = dlpack.describe(capsule)
    assert described.dtype is dtypes.BY_NAME[name]
    assert described.shape == (4,)
    view = read(Exported(capsule), "x")
    assert view.dtype is dtypes.BY_NAME[name]
    assert view.host is not None
    assert view.host.astype(np.float32).tolist() == [0, 1, 2, 3]
    # The codes of DLPack's header, which other libraries write.
    assert dlpack._dtype(code, dtypes.BY_NAME[name].bits, 1) is dtypes.BY_NAME[name]
    assert dlpack._dtype(9, 8, 1) is None


def test_memory_lives_as_long_as_its_numpy_view() -> None:
    owner = Held(np.arange(5.0))
    gone = weakref.ref(owner)

    producer = Producer(owner)
    host = read(producer, "x").host
    del owner, producer
    gc.collect()
    assert gone() is not None
    assert host is not None
    assert host[4] == 4.0
    del host
    gc.collect()
    assert gone() is None
