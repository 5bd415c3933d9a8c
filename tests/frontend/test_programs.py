"""Random programs of scalars: loops and branches mean what they mean in Python."""

import itertools
import linecache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warploom as wl

NAMES = ("a", "b", "c")
_NUMBERS = itertools.count()


def expressions() -> st.SearchStrategy[str]:
    """Integer expressions that stay small, so that 32 bits never run over."""
    leaf = st.sampled_from([*NAMES, "n", "1", "3", "-2", "7"])
    pair = st.tuples(leaf, st.sampled_from(["+", "-", "*", "//", "%"]), leaf)

    def text(parts: tuple[str, str, str]) -> str:
        left, operator, right = parts
        right = f"(abs({right}) + 1)" if operator in ("//", "%") else right
        return f"({left} {operator} {right}) % 101"

    chosen = st.tuples(leaf, leaf, leaf).map(lambda p: f"({p[0]} if {p[1]} > 2 else {p[2]})")
    return st.one_of(leaf, pair.map(text), chosen, pair.map(lambda p: f"max({p[0]}, {p[2]})"))


def conditions() -> st.SearchStrategy[str]:
    """Conditions of scalars, of constants, and both."""
    compare = st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["<", ">=", "==", "!="]),
        st.sampled_from(["0", "n", "5"]),
    ).map(" ".join)
    joined = st.tuples(compare, st.sampled_from(["and", "or"]), compare).map(" ".join)
    return st.one_of(
        compare, joined, compare.map(lambda c: f"not {c}"), st.sampled_from(["True", "0"])
    )


def indented(lines: list[str]) -> list[str]:
    """Lines one step to the right."""
    return [f"    {line}" for line in lines]


def blocks(depth: int) -> st.SearchStrategy[list[str]]:
    """Lists of statements with branches and loops inside."""
    assign = st.tuples(st.sampled_from([*NAMES, "t"]), expressions()).map(
        lambda p: [f"{p[0]} = {p[1]}"]
    )
    swap = st.permutations(NAMES).map(lambda p: [f"{', '.join(NAMES)} = {', '.join(p)}"])
    grow = st.tuples(st.sampled_from(NAMES), expressions()).map(
        lambda p: [f"{p[0]} += {p[1]}", f"{p[0]} %= 97"]
    )
    kinds = [assign, assign, swap, grow]
    if depth:
        inner = blocks(depth - 1)
        kinds += [
            st.tuples(conditions(), inner, inner).map(
                lambda p: [f"if {p[0]}:", *indented(p[1]), "else:", *indented(p[2])]
            ),
            st.tuples(conditions(), inner).map(lambda p: [f"if {p[0]}:", *indented(p[1])]),
            st.tuples(st.sampled_from(["n % 4", "3", "a % 3", "0"]), inner).map(
                lambda p: [f"for i in range({p[0]}):", *indented([*p[1], "a = (a + i) % 89"])]
            ),
            inner.map(lambda p: ["for j in wl.unroll(2):", *indented([*p, "b = (b + j) % 89"])]),
        ]
    return st.lists(st.one_of(kinds), min_size=1, max_size=4).map(
        lambda parts: [line for part in parts for line in part]
    )


def loaded(text: str, name: str) -> object:
    """A function from text that Python can find again, as in a notebook."""
    file = f"<program {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"wl": wl, "__name__": "program"}
    exec(compile(text, file, "exec"), names)
    return names[name]


class Host:
    """What Python needs to run the same text."""

    unroll = range


@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(blocks(3), st.integers(-3, 9))
def test_same_as_python(block, n):
    body = "\n".join(indented(["a, b, c, t = 0, n, 2, 1", *block]))
    python: dict = {"wl": Host}
    exec(f"def run(n):\n{body}\n    return a, b, c, t\n", python)
    kernel = loaded(
        "@wl.kernel\ndef kernel(x: wl.Tensor, n: wl.i32):\n"
        f"{body}\n"
        "    for at, value in enumerate((a, b, c, t)):\n"
        "        wl.store(x[at], value)\n",
        "kernel",
    )
    out = np.zeros(4, np.int32)
    kernel[1](out, n)
    assert tuple(out) == python["run"](n)


def test_a_cell_of_a_notebook():
    kernel = loaded("@wl.kernel\ndef kernel(x: wl.Tensor):\n    wl.store(x[0], 1.0)\n", "kernel")
    out = np.zeros(1, np.float32)
    kernel[1](out)
    assert out[0] == 1.0


def test_its_report_shows_the_cell():
    kernel = loaded("@wl.kernel\ndef kernel(x: wl.Tensor):\n    wl.store(x[0], y)\n", "kernel")
    with pytest.raises(wl.CompileError, match=r"    wl\.store\(x\[0\], y\)"):
        kernel[1](np.zeros(1, np.float32))
