"""Changes around a kernel are seen at the next launch, at the cost of comparing identities."""

import sys
import types
from dataclasses import dataclass

import pytest

import warploom as wl
from warploom.frontend.capture import source_key_parts
from warploom.kernels.gemm import kernel as product
from warploom.runtime.captured import watch

BLOCK = 16
SIZES = (1, 2)
TABLE = [1, 2]


@dataclass
class Config:
    """Settings that can be changed in place."""

    block: int = 4

    __hash__ = object.__hash__


class Names:
    """Constants of a class."""

    BLOCK = 8


CONFIG = Config()
SETTINGS = types.ModuleType("warploom_test_settings")
SETTINGS.depth = 3
SETTINGS.unused = 1
FACTOR = 2


@wl.function
def scaled(t):
    return t * FACTOR


@wl.struct
class Order:
    """A struct with a default, a constant and a method that reads a global."""

    count: int
    STEP: wl.const = 2

    def next(self, t):
        return t + FACTOR * self.STEP


@wl.struct
class Lists:
    """A constant that can be changed in place."""

    count: int = 1
    sizes = TABLE


def with_a_word_of_the_language(x):
    return x if wl.copy_engine else x + 1


def with_struct(x):
    return x + Order(3).next(1)


def with_list_in_a_struct(x):
    return x + Lists().sizes[0]


def kernel(x):
    a = BLOCK + SIZES[0] + SETTINGS.depth
    return scaled(x) + a


def with_table(x):
    return x + TABLE[0]


def with_config(x):
    return x + CONFIG.block


def with_class(x):
    return x + Names.BLOCK


HERE = sys.modules[__name__]


def test_nothing_changed() -> None:
    seen = watch(kernel)
    assert seen.is_current()
    assert not seen.texts, "plain constants are compared by identity"


@pytest.mark.parametrize(
    ("holder", "name", "value"),
    [
        (HERE, "BLOCK", 17),
        (HERE, "SIZES", (1, 2, 3)),
        (HERE, "FACTOR", 3),
        (HERE, "scaled", wl.function(kernel)),
        (SETTINGS, "depth", 4),
    ],
)
def test_a_changed_name_is_seen(
    monkeypatch: pytest.MonkeyPatch, holder: types.ModuleType, name: str, value: object
) -> None:
    seen = watch(kernel)
    monkeypatch.setattr(holder, name, value)
    assert not seen.is_current()


def test_what_the_kernel_does_not_name_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(kernel)
    monkeypatch.setattr(SETTINGS, "unused", 2)
    monkeypatch.setattr(HERE, "TABLE", [5])
    assert seen.is_current()


def test_a_list_changed_in_place_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "TABLE", [1, 2])
    seen = watch(with_table)
    assert seen.is_current()
    TABLE[0] = 9
    assert not seen.is_current()


def test_an_object_changed_in_place_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(with_config)
    assert seen.is_current()
    monkeypatch.setattr(CONFIG, "block", 5)
    assert not seen.is_current()


def test_a_constant_of_a_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(with_class)
    assert seen.is_current()
    key = source_key_parts(with_class, {})
    monkeypatch.setattr(Names, "BLOCK", 9)
    assert not seen.is_current()
    assert source_key_parts(with_class, {}) != key


def test_a_struct_is_compared_by_identity_and_its_methods_are_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = watch(with_struct)
    assert seen.is_current()
    assert not seen.texts, "a launch would compare texts"
    monkeypatch.setattr(HERE, "FACTOR", 5)
    assert not seen.is_current()


def test_words_of_the_language_are_compared_by_identity() -> None:
    seen = watch(with_a_word_of_the_language)
    assert seen.is_current() and not seen.texts


def test_a_call_of_the_library_compares_no_text() -> None:
    """What a launch costs: the product is a kernel that names structs, words and functions."""
    for fn in (product.gemm, product.plain):
        assert not watch(fn.__wrapped__).texts


def test_a_list_in_a_struct_changed_in_place_is_seen() -> None:
    seen = watch(with_list_in_a_struct)
    assert seen.is_current()
    TABLE.append(3)
    try:
        assert not seen.is_current()
    finally:
        TABLE.pop()


def test_a_closure_is_watched() -> None:
    depth = 1

    def inner(x):
        return x + depth

    seen = watch(inner)
    assert seen.is_current()
    depth = 2
    assert not seen.is_current()
