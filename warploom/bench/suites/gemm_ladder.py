"""Suite `gemm-ladder`: each step of examples/gemm against cuBLAS, rows `step/MxNxK`.

The steps multiply a [M, K] by the transpose of b [N, K] in bf16; graphs, operands and errors are
those of suite `gemm`.
"""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.record import Row
from warploom.bench.suites.gemm import is_right, time_in_turn

DEVICE = "gpu"
LIMIT_S = 60.0
TOGETHER = True
ROUNDS, LEAST_S = 15, 1e-3
SHAPES = ("4096x4096x4096", "8192x8192x8192")
FOLDER = machine.ROOT / "examples" / "gemm"


def steps() -> list[str]:
    """The steps in their order: the names of the files."""
    return sorted(path.stem for path in FOLDER.glob("v[0-9]*.py"))


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return [f"{step}/{shape}" for shape in SHAPES for step in steps()]


def load(step: str) -> ModuleType:
    """The module of a step, which has `product(a, b, c)`."""
    path = Path(FOLDER) / f"{step}.py"
    spec = importlib.util.spec_from_file_location(f"gemm_{step}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(case: str, context: Context) -> Row:
    """One row: TFLOP/s of a step and of cuBLAS."""
    step, shape = case.split("/")
    m, n, k = (int(number) for number in shape.split("x"))
    torch_gemm: Any = importlib.import_module("warploom.bench.rivals.torch_gemm")
    sets = torch_gemm.operands(m, n, k, "bf16", "nt", context.seed)
    product = load(step).product
    row = Row(case, "TFLOP/s", "higher", limit="bf16", rounds=ROUNDS)
    graphs = {
        "ours": torch_gemm.Graph(lambda x: product(x.a, x.b.t(), x.ours), sets, LEAST_S),
        "cublas": torch_gemm.Graph(torch_gemm.cublas, sets, LEAST_S),
    }
    if is_right(row, "bf16", sets[-1], torch_gemm):
        time_in_turn(row, graphs, (m, n, k), context)
    return row
