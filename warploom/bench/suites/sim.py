"""Suite `sim`: how long the simulator takes over real work, and how much memory.

A model: plain mode, float32. A warp-specialised product: plain, and with all checks. Peak memory is
that of the whole process, model included.
"""

import sys
from collections.abc import Sequence
from statistics import median
from types import ModuleType

from warploom.base.dtypes import BY_NAME
from warploom.bench.case import Context
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.engine import load
from warploom.engine.pull import find
from warploom.engine.ticker import Ticker
from warploom.kernels.gemm.kernel import gemm
from warploom.runtime.examples import Make
from warploom.runtime.launch import Call

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

DEVICE = "sim"
LIMIT_S = 600.0
PROMPT = "What is the capital of France?"
TOKENS = 8
MODEL = "smollm2-135m"
PRODUCT = "ws-gemm-256"
SIZE = 256
BF16 = BY_NAME["bf16"]
ROUNDS = 15


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return [f"{MODEL}/token", PRODUCT, f"{PRODUCT}/checked"]


def prepare(cases: Sequence[str], device: str) -> None:
    """Fetch the model, or say once what it lacks: before anything is measured."""
    if any(case.startswith(MODEL) for case in cases):
        with Ticker(sys.stderr) as progress:
            find(MODEL, progress)


def measure(case: str, context: Context) -> Row:
    """One row: seconds."""
    if case.startswith(PRODUCT):
        return _product(case, context)
    return _token(case)


def _token(case: str) -> Row:
    """Seconds a token, after a prompt of some thirty tokens."""
    model = load(case.split("/")[0], device="sim", dtype="f32")
    answer = model.generate(PROMPT, max_new_tokens=TOKENS + 1, temperature=0.0)
    text = "".join(piece.text for piece in answer)
    samples = answer.seconds.tokens
    middle, spread = summary(samples)
    return Row(
        case,
        "s",
        "lower",
        ours=middle,
        spread=spread,
        rounds=len(samples),
        config={"dtype": "f32", "prompt_tokens": len(answer.prompt_ids)},
        note=text.strip(),
        extra={
            "rss_mb": peak_memory_mb(),
            "load_s": round(model.load_seconds, 3),
            "prompt_s": round(answer.seconds.prompt, 3),
        },
    )


def product(context: Context) -> Call:
    """C = A · Bᵀ of 256 x 256 x 256 in bf16 by the kernel's own tiles: a role that copies, two
    replicas that multiply, a block for each tile."""
    make, shape = Make("sim", context.seed), (SIZE, SIZE)
    a, b = make.randn(shape, BF16), make.randn(shape, BF16)
    return gemm.launch(2).call(a, b.T, make.zeros(shape, BF16), B_T=True)


def _product(case: str, context: Context) -> Row:
    """Seconds of a product. Both modes take turns, so that one slow spell does not make the ratio;
    `overhead` is the median of one round's."""
    call = product(context)
    call.run()
    found = call.check()
    if not found.clean:
        raise RuntimeError(found.text())
    samples = alternate(
        {"plain": lambda: seconds(call.run), "checked": lambda: seconds(call.check)}, ROUNDS
    )
    checked = case.endswith("/checked")
    middle, spread = summary(samples["checked" if checked else "plain"])
    extra: dict[str, object] = {"rss_mb": peak_memory_mb()}
    if checked:
        pairs = zip(samples["checked"], samples["plain"], strict=True)
        extra["overhead"] = round(median(one / other for one, other in pairs), 2)
    return Row(case, "s", "lower", middle, spread, rounds=ROUNDS, extra=extra)


def peak_memory_mb() -> int:
    """The most memory that this process has held, in MB of 2^20 bytes."""
    if resource is None:
        raise RuntimeError("peak memory is read by getrusage, which this system does not have")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10))
