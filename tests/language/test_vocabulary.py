"""The vocabulary as a whole: documented, exported, refused on the host."""

import inspect

import numpy as np
import pytest

import warploom as wl
from warploom.frontend.build import FAMILIES
from warploom.language.context import VOCABULARY
from warploom.language.values import Scalar, Tensor, Tile


def test_families():
    homes = {function.__module__ for function in VOCABULARY.values()}
    assert homes == {family.__name__ for family in FAMILIES}


def test_all_of_it_is_public():
    # `print` and `assert` of Python mean the last two.
    for name, function in VOCABULARY.items():
        assert getattr(wl, name) is function


@pytest.mark.parametrize("name", sorted(VOCABULARY))
def test_documented(name):
    text = inspect.getdoc(VOCABULARY[name]) or ""
    lines = [line.partition(":")[0] for line in text.splitlines()]
    assert len(text.split("\n\n")[0]) > 20
    wanted = ["Shapes", "Executes", "Since"]
    assert [line for line in lines if line in wanted] == wanted


@pytest.mark.parametrize("kind", [Tile, Scalar, Tensor])
def test_methods_are_documented(kind):
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert inspect.getdoc(member), f"{kind.__name__}.{name}"


# One call of each that gets as far as the kernel that is not there.
CALLS = {
    "program_id": (0,),
    "num_programs": (0,),
    "zeros": (4, wl.f32),
    "full": (4, 1.0, wl.f32),
    "arange": (4,),
    "exp": (1.0,),
    "log": (np.zeros(4),),
    "load": (np.zeros(4),),
    "sqrt": (1.0,),
    "device_print": ("text",),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_on_the_host(name):
    with pytest.raises(wl.CompileError, match="F034"):
        VOCABULARY[name](*CALLS[name])
