"""Names of C++ variables: the user's own where possible, always legal and unique."""

import pytest

from warploom.codegen.names import Names


def test_a_name_is_kept():
    assert Names().take("acc") == "acc"


def test_a_taken_name_gets_a_number():
    names = Names()
    assert [names.take("acc") for _ in range(3)] == ["acc", "acc_1", "acc_2"]


def test_a_number_does_not_meet_a_name_of_the_user():
    names = Names()
    assert names.take("acc_1") == "acc_1"
    assert [names.take("acc"), names.take("acc")] == ["acc", "acc_2"]


@pytest.mark.parametrize(
    "word", ["float", "int", "c", "r", "threadIdx", "exp", "max", "bf16", "smem"]
)
def test_reserved_words_are_avoided(word):
    assert Names().take(word) == f"{word}_1"


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("", "t"),
        ("_", "t"),
        ("__x", "x"),
        ("a__b", "a_b"),
        ("größe", "gruf6udfe"),
        ("β", "u3b2"),
        ("2d", "v_2d"),
        ("ld_global_f32x4", "v_ld_global_f32x4"),
        ("to_f32", "v_to_f32"),
        ("take_max_bf16", "v_take_max_bf16"),
        ("max_value", "max_value"),
    ],
)
def test_python_names_become_legal(wish, name):
    assert Names().take(wish) == name
