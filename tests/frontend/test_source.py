"""Where the source of a function comes from, and what is refused before it is read."""

import ast
import linecache

import pytest

from warploom.base.errors import CompileError
from warploom.frontend.source import read


def refusal(fn) -> str:
    """The text of the error that reading a function gives."""
    with pytest.raises(CompileError) as caught:
        read(fn)
    return str(caught.value)


FUNCTIONS = {
    "lambda": "f = lambda x: x",
    "method": "class C:\n    def f(self):\n        pass\n\nf = C.f",
    "bound_method": "class C:\n    def f(self):\n        pass\n\nf = C().f",
    "class": "class f:\n    pass",
    "object": "class C:\n    def __call__(self):\n        pass\n\nf = C()",
    "coroutine": "async def f():\n    pass",
    "generator": "def f():\n    yield 1",
    "decorator": "import functools\n\n@functools.lru_cache\n@wl.function\ndef f():\n    pass",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refused(name, source, golden):
    golden(refusal(source.module(FUNCTIONS[name]).f))


def test_no_source(golden):
    names: dict = {}
    exec(compile("def f():\n    pass", "<typed>", "exec"), names)
    golden(refusal(names["f"]))


def test_file_has_changed(source, golden):
    module = source.module("def f():\n    pass\n\ndef g():\n    pass\n")
    path = source.folder / "kernel.py"
    path.write_text("\n\n" + path.read_text(), encoding="utf-8")
    linecache.checkcache(str(path))
    golden(refusal(module.g))


def test_text_is_kept(source):
    module = source.module("def f():\n    a = 1\n")
    before = read(module.f).text
    path = source.folder / "kernel.py"
    path.write_text("nothing\n" * 9, encoding="utf-8")
    linecache.checkcache(str(path))
    assert read(module.f).text == before


SHAPES = {
    "plain": "def f():\n    return 1\n",
    "last_line_without_break": "def f():\n    return 1",
    "one_line": "def f(): return 1\n",
    "followed": "def f():\n    return 1\na = 2\n",
    "bracket_at_the_margin": "def f(\n    a,\n):\n    return a\nb = 1\n",
    "text_at_the_margin": 'def f():\n    a = """\nno end\n"""\n    return a\n',
    "comment_at_the_margin": "def f():\n    a = 1\n# a note\n    return a\n",
    "empty_lines": "def f():\n\n    a = 1\n\n\n    return a\n\n\nb = 1\n",
    "decorated": "def mark(f):\n    return f\n\n@wl.function\ndef f():\n    return 1\n",
    "in_a_branch": "if True:\n    def f():\n        return 1\nelse:\n    f = None\n",
    "in_a_function": "def make():\n    def f():\n        return 1\n    return f\nf = make()\n",
    "with_tabs": "def make():\n\tdef f():\n\t\treturn 1\n\treturn f\nf = make()\n",
    "long_decorator": "@wl.function\n# a note\n\ndef f(\n    a=(\n    1\n    ),\n):\n  return a\n",
}


@pytest.mark.parametrize("name", SHAPES)
def test_blocks(name, source):
    module = source.module(SHAPES[name])
    found = read(module.f)
    assert found.name == "f"
    last = found.tree.body[-1]
    assert isinstance(last, ast.Return)
    lines = (source.folder / "kernel.py").read_text().split("\n")
    place = found.place(last)
    assert lines[place.line - 1][place.column - 1 :].startswith("return")
    assert lines[found.line - 1 : found.line - 1 + len(found.lines)] == [
        line.rstrip("\n") for line in found.lines
    ]
    # The text ends where the function ends.
    assert found.line + len(found.lines) - 1 == place.line


def test_columns_count_characters(source):
    module = source.module("def f():\n    größe = '日本'; return größe\n")
    found = read(module.f)
    place = found.place(found.tree.body[-1])
    assert (place.column, place.end_column) == (19, 31)


def test_wrapped_functions(source):
    module = source.module("@wl.function\ndef f():\n    return 1\n")
    assert read(module.f).fn is module.f.__wrapped__
