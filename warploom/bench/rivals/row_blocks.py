"""Blocks that the rival of RMSNorm in Triton is tried with: (elements, warps). Knows no Triton, so
that who lets them be compiled need not import it."""

_LARGEST = 65_536
BLOCKS = tuple((size, warps) for size in (4096, 8192, 16_384, _LARGEST) for warps in (8, 16, 32))
