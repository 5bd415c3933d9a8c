"""What a kernel says of layouts, held against those that its tiles have."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import parse
from warploom.ir.ops import layouts
from warploom.ir.parser import parse_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.check_layouts import check_layouts

WIDE = "l8:1*4 l4:0*1 w4:0*4 r4:1*1"
ROWS = "l16:0*1 l2:1*1 w4:1*2 r4:1*8"


@wl.kernel
def said(x: wl.Tensor, y: wl.Tensor, PINNED: wl.const, ASSERTED: wl.const):
    at, all = wl.ds(0, 16), wl.ds(0, 32)
    t = wl.load(x[at, all])
    if PINNED:
        t = wl.pin(t, PINNED)
    wl.assert_layout(t, ASSERTED)
    wl.store(y[at, all], t)


def laid_out(pinned: str, asserted: str) -> Kernel:
    x = np.zeros((16, 32), np.float32)
    kernel = parse_kernel(said.launch(1).call(x, x.copy(), pinned, asserted).text("tile"))
    assign_layouts(kernel, SM_90A)
    return kernel


@pytest.mark.parametrize("layout", [WIDE, ROWS])
def test_what_holds_passes(layout: str):
    kernel = laid_out(layout, layout)
    check_layouts(kernel, SM_90A)
    (pin,) = (op for op in walk(kernel.body) if isinstance(op, layouts.Pin))
    assert pin.result.type.layout == pin.value.type.layout == parse(f"(16x32; {layout})")


def test_the_natural_layout_of_a_load_may_be_asserted():
    check_layouts(laid_out("", WIDE), SM_90A)


@pytest.mark.parametrize("pinned", ["", WIDE])
def test_what_does_not_hold_is_refused(pinned: str):
    with pytest.raises(CompileError) as caught:
        check_layouts(laid_out(pinned, ROWS), SM_90A)
    assert caught.value.code == "L027"
    assert parse(f"(16x32; {WIDE})").__str__() in caught.value.reports[0].notes[0]


def test_a_pin_that_could_not_be_is_refused():
    kernel = laid_out(WIDE, WIDE)
    (pin,) = (op for op in walk(kernel.body) if isinstance(op, layouts.Pin))
    pin.layout = str(parse(f"(16x32; {ROWS})"))
    with pytest.raises(CompileError) as caught:
        check_layouts(kernel, SM_90A)
    assert caught.value.code == "L026"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(16x32; l8:1*4 l4:0*1 w4:0*4 r4:1*1)", ""),
        ("(16x32; l8:1*4 l4:_ w4:0*4 r4:1*1 r4:0*1)", ""),
        ("(16x32; l8:1*4 l4:0*1 w8:0*4 r4:1*1)", ""),
        ("(16x30; l8:1*4 l4:0*1 w4:0*4 r4:1*1)", "of shape (16, 30)"),
        ("(16x32; l8:1*4 l4:0*1 w4:0*4 r3:1*1)", "lie nowhere"),
        ("(16x32; l8:1*4 l4:0*1 w4:0*4 r8:1*1)", "in several places"),
        ("(16x32; l8:1*4 l4:0*1 w4:0*4 r99999:1*1)", "more than 32,768 places"),
    ],
)
def test_a_layout_holds_every_element_once(text: str, wrong: str):
    found = layouts.misfit(parse(text), (16, 32))
    assert (wrong in found) if wrong else found == ""
