"""Compiles what rivals of suite `norm` launch into their caches on disk: python -m
warploom.bench.norm_compile compiled CASE, or triton CASE SIZE WARPS

Nothing is timed, and what arrays hold is never looked at. Knows nothing of our kernels.
"""

import importlib
import os
import sys
from typing import Any

from warploom.bench.suites.norm import parse

FEW = 8  # rows: the kernel in Triton is the same for any number


def _held(rows: int, columns: int) -> Any:
    """One set of operands."""
    torch: Any = importlib.import_module("torch")
    torch_rows: Any = importlib.import_module("warploom.bench.rivals.torch_rows")
    shapes = ((rows, columns), (columns,), (columns,), (rows, columns), (rows, columns))
    made = (torch.zeros(shape, dtype=torch.bfloat16, device="cuda") for shape in shapes)
    return torch_rows.Operands(*made)


def compiled(case: str) -> None:
    """Let torch compile the function of a case, for its shape."""
    kind, rows, columns = parse(case)
    torch_rows: Any = importlib.import_module("warploom.bench.rivals.torch_rows")
    torch_rows.sides(kind)["torch_compile"](_held(rows, columns))


def triton(case: str, size: int, warps: int) -> None:
    """Let Triton compile the kernel for one of its blocks."""
    triton_rows: Any = importlib.import_module("warploom.bench.rivals.triton_rows")
    triton_rows.launch(_held(FEW, parse(case)[2]), (size, warps))


def main() -> int:
    """Do one job."""
    # One of many processes beside each other: none starts more.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    what, case, *block = sys.argv[1:]
    if what == "compiled":
        compiled(case)
    else:
        triton(case, int(block[0]), int(block[1]))
    importlib.import_module("torch").cuda.synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
