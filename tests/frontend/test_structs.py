"""`wl.struct`: fields, methods, what loops and branches make of them, and every misuse."""

import pytest

import warploom as wl
from warploom.base.errors import CompileError
from warploom.frontend.capture import source_key_parts

POINT = """
@wl.struct
class Point:
    x: int
    y: int = 0
    SCALE: wl.const = 2
    AXES = 2

    def size(self):
        return self.x * self.SCALE + self.y

    def moved(self, by):
        return self.replace(x=self.x + by, y=self.size())

"""


def kernel(body, parameters="out: wl.Tensor, n: wl.i32"):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return f"{POINT}def kernel({parameters}):\n{lines}"


def test_methods_are_inlined(source, golden):
    golden(
        source.ir(
            kernel(
                """
p = Point(n, SCALE=3)
wl.store(out[p.size() + p.AXES], 1.0)
"""
            ),
            out="f32 1",
        )
    )


def test_loops_and_branches_carry_fields(source, golden):
    golden(
        source.ir(
            kernel(
                """
p = Point(0)
for i in wl.range(n):
    p = p.moved(i)
if n > 3:
    p = p.replace(y=n)
wl.store(out[p.size()], 1.0)
"""
            ),
            out="f32 1",
        )
    )


def test_passed_and_returned(source):
    text = source.ir(
        POINT
        + """
@wl.function
def twice(p, by):
    return p.moved(by).moved(by)

def kernel(out: wl.Tensor, n: wl.i32):
    wl.store(out[twice(Point(n), 4).x - n], 1.0)
""",
        out="f32 1",
    )
    assert "tile.store" in text


def test_fields_hold_tiles_buffers_pipes_and_barriers(source):
    text = source.ir(
        """
@wl.struct
class Stage:
    ring: object
    bars: object
    tensor: wl.Tensor
    total: object = None

    def fill(self, k):
        with self.ring.put() as s:
            wl.copy_async(self.tensor[wl.ds(0, 8), wl.ds(k, 32)], s)

    def add(self):
        with self.ring.get() as s:
            total = self.total + s.load()
        return self.replace(total=total)

def kernel(x: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    stage = Stage(ring, wl.barrier(1, arrivals=1), x)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, x.shape[1], 32):
                stage.fill(k)
        with wl.role("sum", warps=1):
            sums = stage.replace(total=wl.zeros((8, 32), wl.f32))
            for k in wl.range(0, x.shape[1], 32):
                sums = sums.add()
            wl.store(y[wl.ds(0, 8), wl.ds(0, 32)], sums.total)
""",
        x="f32 n1",
        y="f32 n1",
    )
    assert text.count("roles.position") == 2
    assert "%sums: f32<8x32>" in text


def test_annotations_as_text(source):
    text = source.ir(
        """
@wl.struct
class Pair:
    a: "wl.i32"
    b: "wl.Tensor | None" = None

def kernel(n: wl.i32, out: wl.Tensor):
    p = Pair(3)
    if p.b is None:
        p = p.replace(b=out)
    wl.store(p.b[p.a], 1.0)
""",
        out="f32 1",
    )
    assert "tile.store" in text


@wl.struct
class Held:
    """A struct whose method calls a function."""

    a: int

    def more(self):
        return self.a + STEP


STEP = 5


def uses(x: wl.Tensor, n: wl.i32):
    wl.store(x[Held(n).more()], 1.0)


def test_the_key_holds_fields_methods_and_what_they_capture():
    parts = dict(source_key_parts(uses, {}))
    text = "\n".join(f"{name}: {value}" for name, value in parts.items())
    assert "struct tests.frontend.test_structs.Held(a: " in text
    assert "return self.a + STEP" in text
    assert any(name.endswith(" STEP") and value == "5" for name, value in parts.items())


def test_a_struct_as_a_constant():
    parts = dict(source_key_parts(uses, {"KIND": Held}))
    assert parts["constant KIND"].startswith("struct ")


BODIES = {
    "missing_field": "p = Point()",
    "unknown_field": "p = Point(1, z=2)",
    "replace_unknown": "p = Point(1).replace(z=2)",
    "run_time_constant": "p = Point(1, SCALE=n)",
    "another_kind": "p = Point(1.5)",
    "tile_field": "p = Point(wl.zeros(4, wl.i32))",
    "no_attribute": "p = Point(1).sise()",
    "assigned_field": "p = Point(1)\np.x = 3",
    "augmented_field": "p = Point(1)\np.x += 3",
    "method_arguments": "p = Point(1).moved()",
    "arithmetic": "p = Point(1) + 1",
    "condition": "if Point(1):\n    pass",
    "constant_changes": "p = Point(1)\nfor i in wl.range(n):\n    p = p.replace(SCALE=3)",
    "branch_differs": "p = Point(1)\nif n > 1:\n    p = p.replace(SCALE=3)\nq = p.x",
    "is_stored": "wl.store(out[0], Point(1))",
}


@pytest.mark.parametrize("name", BODIES)
def test_refused(source, golden, name):
    golden(str(source.refused(kernel(BODIES[name]), out="f32 1")), name)


CLASSES = {
    "base_class": "class Broken(int):\n    a: int",
    "constructor": "class Broken:\n    a: int\n\n    def __init__(self):\n        pass",
    "property": "class Broken:\n    a: int\n\n    @property\n    def b(self):\n        return 1",
    "static_method": "class Broken:\n    @staticmethod\n    def b():\n        return 1",
    "unknown_kind": "class Broken:\n    a: list",
    "unknown_text": 'class Broken:\n    a: "Nothing"',
    "taken_name": "class Broken:\n    replace: int",
    "nested_class": "class Broken:\n    class Inner:\n        pass",
    "function": "def Broken():\n    pass",
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_is_no_struct(source, golden, name):
    with pytest.raises(CompileError) as caught:
        source.module(f"@wl.struct\n{CLASSES[name]}\n")
    golden(str(caught.value), name)


def test_made_on_the_host(golden):
    with pytest.raises(CompileError) as caught:
        Held(1)
    golden(str(caught.value))


def test_a_method_that_calls_itself(source, golden):
    error = source.refused(
        """
@wl.struct
class Loop:
    a: int

    def again(self):
        return self.again()

def kernel(n: wl.i32):
    Loop(n).again()
"""
    )
    golden(str(error))
