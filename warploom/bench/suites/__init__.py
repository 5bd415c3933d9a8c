"""One module a suite. A suite has

- `DEVICE`: where it runs unless told otherwise, `sim` or `gpu`;
- `LIMIT_S`: seconds after which a case counts as hung;
- `cases(device)`: the names of its rows, in the order of the file;
- `measure(case, context)`: one row, called in a process of its own;
- `prepare(cases, device)`, if it is there: called once before the first case;
- `TOGETHER`, if it is there and true: cases share a process until one of them fails.
"""

import importlib
from types import ModuleType

NAMES = (
    *("compile", "sim", "decode-small", "decode", "gemm", "gemm-ladder", "norm"),
    *("collectives", "exchange"),
)


def load(name: str) -> ModuleType:
    """The module of a suite."""
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
