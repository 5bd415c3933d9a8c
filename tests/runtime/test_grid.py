"""Grids: what is accepted, CUDA's limits, and the words of refusals."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError
from warploom.runtime.grid import parse, parse_cluster


@pytest.mark.case("C22")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (4, (4, 1, 1)),
        ((4,), (4, 1, 1)),
        ([4], (4, 1, 1)),
        ((4, 5), (4, 5, 1)),
        ((1, 0, 1), (1, 0, 1)),
        (np.int64(7), (7, 1, 1)),
        ((2**31 - 1,), (2**31 - 1, 1, 1)),
        ((1, 65535, 65535), (1, 65535, 65535)),
    ],
)
def test_accepted(given: object, expected: tuple[int, int, int]) -> None:
    assert parse(given) == expected


@pytest.mark.case("C22")
@pytest.mark.parametrize("given", [(2**31,), (1, 65536, 1), (1, 1, 70000)], ids=["x", "y", "z"])
def test_too_large(given: object, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        parse(given)
    golden(str(caught.value))


def grid_function(meta: dict) -> int:
    return 1


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("float", 4.0),
        ("float in a tuple", (4, 2.5)),
        ("four extents", (1, 1, 1, 1)),
        ("none", ()),
        ("negative", (4, -1)),
        ("bool", True),
        ("text", "4"),
    ],
)
def test_not_a_grid(name: str, given: object, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        parse(given)
    golden(str(caught.value), name)


def test_a_function_of_the_options_is_no_grid() -> None:
    with pytest.raises(LaunchError, match="compute the grid before the launch"):
        parse(grid_function)


def test_clusters_that_are_taken() -> None:
    grid = (4, 6, 2)
    assert parse_cluster(None, grid) == (1, 1, 1)
    assert parse_cluster(2, grid) == (2, 1, 1)
    assert parse_cluster((2, 2), grid) == (2, 2, 1)
    assert parse_cluster([1, 2, 2], grid) == (1, 2, 2)
    assert parse_cluster((4, 2, 1), (0, 6, 2)) == (4, 2, 1)
    assert parse_cluster(16, (32, 1, 1)) == (16, 1, 1)
    assert parse_cluster((3, 5), (3, 5, 1)) == (3, 5, 1)


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("text", "2"),
        ("zero", (0, 1, 1)),
        ("four extents", (1, 1, 1, 1)),
        ("bool", True),
        ("too many", (6, 3, 1)),
        ("not whole", (4, 4, 1)),
    ],
)
def test_clusters_that_are_refused(name: str, cluster: object, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        parse_cluster(cluster, (6, 8, 1))
    golden(str(caught.value))
