"""Suite `compile`: what the first launch of a kernel costs, cold and with the cubin on disk.

Each sample is a process of its own. Needs NVRTC, no GPU and no driver.
"""

import json
import os
import subprocess
import sys
import tempfile

from warploom.bench.case import Context
from warploom.bench.measure import summary
from warploom.bench.record import Row

DEVICE = "sim"
LIMIT_S = 300.0
ROUNDS = 7
KERNELS = {
    "softmax": "warploom.kernels.activation.kernel:softmax",
    "rms_norm": "warploom.kernels.norm.kernel:rms_norm",
    "linear": "warploom.kernels.linear.kernel:linear",
    "rope": "warploom.kernels.rope.kernel:rope_half",
    "decode_attention": "warploom.kernels.attention.kernel:decode_split",
    "gemm": "warploom.kernels.gemm.kernel:gemm@whole",
}


def cases(device: str) -> list[str]:
    """The rows of the suite: each kernel cold, then each warm."""
    return [f"{state}/{name}" for state in ("cold", "warm") for name in KERNELS]


def measure(case: str, context: Context) -> Row:
    """One row: seconds until the cubin is there."""
    state, name = case.split("/")
    samples: list[float] = []
    size = 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            if state == "warm":
                compile_once(KERNELS[name], cache)
            answer = compile_once(KERNELS[name], cache)
        if answer["hits"] != (state == "warm"):
            raise RuntimeError(f"{case}: {answer['hits']} hits of the cache")
        samples.append(answer["seconds"])
        size = answer["bytes"]
    middle, spread = summary(samples)
    extra = {"cubin_bytes": size}
    return Row(case, "s", "lower", middle, spread, rounds=ROUNDS, extra=extra)


def compile_once(kernel: str, cache: str) -> dict[str, float]:
    """Compile in a new process with this cache folder."""
    done = subprocess.run(
        [sys.executable, "-m", "warploom.bench.compile_once", kernel],
        env={**os.environ, "WARPLOOM_CACHE": cache, "WARPLOOM_VERIFY": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)
