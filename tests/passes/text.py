"""Running one pass on a text."""

from textwrap import dedent, indent

from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel
from warploom.ir.parser import parse_kernel
from warploom.ir.printer import print_kernel
from warploom.ir.verifier import verify_kernel
from warploom.passes.pipeline import Pass

PARAMS = (
    "%x: tensor<f32, n1, align 16, extent 16>, %y: tensor<f32, n1, align 16, extent 16>, "
    "%n: i32@grid, %m: i32@grid, %p: f32@grid"
)


def kernel(
    body: str, stage: str = "machine", options: str = "warps=4", params: str = PARAMS
) -> str:
    """The text of a kernel with this body; the last yield is added."""
    lines = indent(dedent(body).strip("\n"), "  ")
    return f"kernel @k({params}) stage={stage} {options} {{\n{lines}\n  control.yield([])\n}}\n"


def parsed(body: str, stage: str = "machine", **options: str) -> Kernel:
    """The kernel, verified."""
    made = parse_kernel(kernel(body, stage, **options))
    verify_kernel(made)
    return made


def after(step: Pass, body: str, stage: str = "machine", **options: str) -> str:
    """The body's text after a pass, verified."""
    made = parsed(body, stage, **options)
    step(made, SM_90A)
    verify_kernel(made)
    return body_of(made)


def body_of(made: Kernel) -> str:
    """The body's text without the last yield."""
    lines = print_kernel(made).splitlines()[1:-2]
    return dedent("\n".join(lines))


def same(text: str, expected: str, stage: str = "machine") -> None:
    """Equal bodies; what the expected one leaves out or numbers in another way does not count."""
    assert text == body_of(parse_kernel(kernel(expected, stage)))
