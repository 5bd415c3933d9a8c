"""Suite `sim`: how long the simulator takes over real work, and how much memory.

Plain mode, float32. Peak memory is that of the whole process, model included.
"""

import sys
from types import ModuleType

from warploom.bench.case import Context
from warploom.bench.measure import summary
from warploom.bench.record import Row
from warploom.engine import load

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

DEVICE = "sim"
LIMIT_S = 600.0
PROMPT = "What is the capital of France?"
TOKENS = 8


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return ["smollm2-135m/token"]


def measure(case: str, context: Context) -> Row:
    """One row: seconds a token, after a prompt of some thirty tokens."""
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


def peak_memory_mb() -> int:
    """The most memory that this process has held, in MB of 2^20 bytes."""
    if resource is None:
        raise RuntimeError("peak memory is read by getrusage, which this system does not have")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10))
