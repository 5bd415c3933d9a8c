"""Products of the matrix unit, and the pipes and replicas that feed them."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread
from warploom.base.dtypes import BY_NAME
from warploom.base.target import PRODUCTS, product_of
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


# ---- every pair of types -----------------------------------------------------------------------


@wl.kernel
def one_product(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    M: wl.const,
    N: wl.const,
    K: wl.const,
    SUMS: wl.const,
    REGISTERS: wl.const,
):
    """c = a · bᵀ + 1, both stored along K, in one group; A is loaded to registers if so wished."""
    left, right = wl.shared((M, K), a.dtype), wl.shared((N, K), b.dtype)
    tile = wl.load(a[wl.ds(0, M), wl.ds(0, K)])
    left.store(tile)
    right.store(wl.load(b[wl.ds(0, N), wl.ds(0, K)]))
    acc = wl.full((M, N), 1, SUMS)
    acc = wl.dot_async(tile if REGISTERS else left, right.T, acc)
    wl.store(c[wl.ds(0, M), wl.ds(0, N)], acc.wait())


def exact(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers whose products and sums are exact in every type of sum; for f32 with bits that tf32
    does not have."""
    rng = np.random.default_rng(seed)
    dtype = BY_NAME[name]
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype.numpy)
    numbers = rng.integers(-8, 9, shape).astype(np.float32)
    if name == "f32":
        numbers += numbers * np.float32(2.0**-12) * rng.integers(0, 2, shape).astype(np.float32)
    return numbers.astype(dtype.numpy)


def as_multiplied(array: np.ndarray) -> np.ndarray:
    """What the unit sees of an operand: tf32 has 10 bits of a fraction, the rest is cut off."""
    if array.dtype == np.float32:
        return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def pair(op: str, first: str, second: str, m: int, n: int, registers: bool) -> Case:
    can = product_of(BY_NAME[first], BY_NAME[second])
    k = 128 // BY_NAME[first].bytes if n <= 128 else can.depth

    def make(device):
        a, b = exact(first, (m, k), 1), exact(second, (n, k), 2)
        c = device.empty((m, n), can.sums.numpy)
        options = {"M": m, "N": n, "K": k, "SUMS": can.sums, "REGISTERS": registers}
        call = one_product.launch(1).call(device.put(a), device.put(b), c, **options)
        expected = as_multiplied(a) @ as_multiplied(b).T + 1
        return Trial(call, [(c, expected.astype(can.sums.numpy))])

    where = "registers" if registers else "shared"
    return Case(op, first, make, f"{second}-{m}x{n}x{k}-{where}")


def every_pair() -> list[Case]:
    """Each pair of types with few and many columns, A in both places."""
    found = []
    for can in PRODUCTS:
        for a, b in can.pairs:
            for n in (8, 24, 64, 256):
                found.append(pair("wgmma.dot", a.name, b.name, 64, n, False))
            found.append(pair("wgmma.dot", a.name, b.name, 128, 64, False))
            found += [pair("wgmma.dot", a.name, b.name, m, 32, True) for m in (64, 128)]
    return found


CASES += every_pair()
CASES += [
    Case("wgmma.begin", "i32", pair("wgmma.dot", "i8", "u8", 64, 16, False).make),
    Case("wgmma.mma_registers", "", pair("wgmma.dot", "f8e4m3", "f8e5m2", 64, 16, True).make),
]
