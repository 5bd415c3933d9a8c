"""Products of the matrix unit, and the pipes and replicas that feed them."""

import numpy as np

from tests.ops.trial import Case, Trial, spread
from warploom.kernels.gemm.kernel import gemm


def product(op: str, dtype: str, stages: int = 3, named: str | None = None, **more) -> Case:
    """A ragged product of two replicas; f32 sums of 16-bit products in another order are near."""

    def make(device):
        a, b = spread(dtype, (136, 328), 1), spread(dtype, (328, 72), 2)
        c = device.empty((136, 72), np.float32)
        options = {
            "B_T": False,
            "BM": 128,
            "BN": 64,
            "EN": 32,
            "STAGES": stages,
            "GROUP": 1,
            **more,
        }
        call = gemm.launch(2).call(device.put(a), device.put(b), c, **options)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        return Trial(call, [(c, expected.astype(np.float32))], absolute=2e-3)

    return Case(op, dtype if named is None else named, make, f"{dtype}-stages{stages}")


CASES = [product("wgmma.dot", dtype, stages) for dtype in ("f16", "bf16") for stages in (1, 3)]
CASES.append(product("wgmma.begin", "bf16", named="f32"))
CASES += [
    product(f"wgmma.{name}", "bf16", named="")
    for name in ("fence", "mma", "commit", "wait_group", "wait", "settle", "drain")
]
CASES += [
    product(f"roles.{name}", "bf16", named="") for name in ("replica", "position", "hand_back")
]
CASES.append(product("roles.skip", "bf16", named="", PINGPONG=True))
