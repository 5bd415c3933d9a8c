"""Warps, named barriers and registers of roles. Texts of refusals: tests/frontend/test_roles.py."""

import itertools

import pytest

from tests.passes.text import parsed
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.ir.ops.roles import Split
from warploom.passes.place_roles import entry_registers, place_roles


def placed(*roles: tuple[str, int, int, int]) -> Split:
    """The split of roles (name, warps, replicas, registers) after the pass."""
    names, warps, replicas, registers = zip(*roles, strict=True)

    def numbers(values: tuple[object, ...]) -> str:
        return "(" + "".join(f"{v}, " for v in values) + ")"

    quoted = tuple(f'"{n}"' for n in names)
    minus = numbers((-1,) * len(roles))
    bodies = " ".join("{\n  control.yield([])\n}" for _ in roles)
    made = parsed(
        f"roles.split() [names={numbers(quoted)}, warps={numbers(warps)}, "
        f"replicas={numbers(replicas)}, registers={numbers(registers)}, first={minus}, "
        f"barrier={minus}] {bodies}",
        "tile",
    )
    place_roles(made, SM_90A)
    split = made.body.ops[0]
    assert isinstance(split, Split)
    assert made.warps == sum(w * r for w, r in zip(split.warps, split.replicas, strict=True))
    return split


def test_a_copying_warp_and_two_warpgroups() -> None:
    split = placed(("load", 1, 1, 0), ("math", 4, 2, 0))
    assert split.names == ("load", "math", "idle")
    assert split.warps == (1, 4, 3)
    assert split.first == (8, 0, 9), "whole warpgroups come first"
    assert split.barrier == (0, 1, 3), "one a replica of several warps"
    # 384 threads enter with 168 registers: 40 stay with the copies, the rest is divided.
    assert split.registers == (40, 232, 40)


def test_roles_without_small_ones_keep_what_they_have() -> None:
    split = placed(("a", 4, 1, 0), ("b", 8, 1, 0))
    assert split.first == (0, 4)
    assert split.registers == (0, 0)


def test_asked_registers_are_given_and_the_rest_divided() -> None:
    split = placed(("load", 1, 1, 24), ("math", 4, 2, 0))
    assert split.registers == (24, 240, 24)
    assert placed(("a", 4, 1, 104), ("b", 4, 1, 0)).registers == (104, 240)


def test_small_roles_share_a_warpgroup_and_its_registers() -> None:
    split = placed(("load", 1, 1, 32), ("store", 2, 1, 56), ("math", 4, 1, 0))
    assert split.first == (4, 5, 0, 7)
    assert split.registers == (56, 56, 240, 56)


def test_a_role_called_idle_is_no_padding() -> None:
    assert placed(("idle", 1, 1, 0)).names == ("idle", "idle_")


def test_whatever_is_placed_fits() -> None:
    sizes = ((1, 1), (2, 1), (3, 2), (4, 1), (4, 2), (8, 1))
    for given in itertools.combinations_with_replacement(sizes, 3):
        roles = [(f"r{i}", w, n, 0) for i, (w, n) in enumerate(given)]
        split = placed(*roles)
        spans = [
            set(range(first, first + w * n))
            for first, w, n in zip(split.first, split.warps, split.replicas, strict=True)
        ]
        total = sum(map(len, spans))
        assert len(set().union(*spans)) == total and total % 4 == 0, "apart and without holes"
        for first, warps in zip(split.first, split.warps, strict=True):
            assert warps % 4 or first % 4 == 0, "a warpgroup starts at a multiple of 4"
        pool = entry_registers(32 * total, SM_90A) * total * 32
        asked = sum(
            count * w * n * 32
            for count, w, n in zip(split.registers, split.warps, split.replicas, strict=True)
        )
        assert asked <= pool
        barriers = [
            b + i
            for b, w, n in zip(split.barrier, split.warps, split.replicas, strict=True)
            for i in range(n)
            if w > 1
        ]
        assert len(set(barriers)) == len(barriers) and 0 not in barriers


@pytest.mark.parametrize(
    ("threads", "registers"), [(128, 248), (256, 248), (384, 168), (512, 128), (640, 96)]
)
def test_registers_at_entry(threads: int, registers: int) -> None:
    assert entry_registers(threads, SM_90A) == registers


@pytest.mark.parametrize(
    ("roles", "code", "hint"),
    [
        ([("load", 1, 1, 40), ("math", 4, 2, 240)], "B010", "give `math` registers=232"),
        ([("a", 6, 1, 200), ("b", 10, 1, 0)], "B010", "give `a` registers=128"),
        ([("a", 4, 4, 240), ("b", 4, 1, 240)], "B010", "give `a` registers=56"),
        (
            [(name, 4, 1, 256) for name in "abc"],
            "B010",
            "give every role registers=168 at most",
        ),
        ([("many", 2, 16, 0)], "B011", "fewer replicas"),
        ([("load", 1, 1, 0), ("math", 4, 8, 0)], "B012", "fewer warps"),
    ],
)
def test_what_does_not_fit(roles: list[tuple[str, int, int, int]], code: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        placed(*roles)
    assert caught.value.code == code
    assert hint in str(caught.value)


def test_the_proposals_fit() -> None:
    assert placed(("load", 1, 1, 40), ("math", 4, 2, 232)).registers == (40, 232, 40)
    assert placed(("a", 6, 1, 128), ("b", 10, 1, 0)).registers == (128, 128)
    assert placed(("a", 4, 4, 56), ("b", 4, 1, 240)).registers == (56, 240)
    assert placed(*((name, 4, 1, 168) for name in "abc")).registers == (168, 168, 168)


def test_a_kernel_without_roles_is_left_alone() -> None:
    made = parsed("%c: i32@grid = scalar.const() [number=1, dtype=i32]", "tile")
    place_roles(made, SM_90A)
    assert made.warps == 4
