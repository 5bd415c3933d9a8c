"""Random kernels as hypothesis draws them: small ones first, and shrunk where they fail."""

from hypothesis import strategies as st

from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tile_generator import Generator


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Random kernels."""
    return Generator(lambda low, high: draw(st.integers(low, high))).case()
