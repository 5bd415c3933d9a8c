"""Compiles one kernel once and prints the seconds: python -m warploom.bench.compile_once KERNEL

KERNEL is `package.module:kernel`, with `@example` where it is not the first example that gives the
arguments. What the first launch of a process would pay counts: front end, passes, CUDA text, NVRTC,
or the entry on disk.
"""

import importlib
import json
import sys
import time

from warploom.base import target
from warploom.runtime import compile as compiler
from warploom.runtime.stats import counters


def main() -> int:
    """Print {seconds, cache_hits, cubin_bytes} as JSON."""
    module, _, kernel = sys.argv[1].partition(":")
    name, _, example = kernel.partition("@")
    call = getattr(importlib.import_module(module), name).example_call(example)
    request = call.request
    began = time.perf_counter()
    image = compiler.gpu_image(request, target.DEFAULT)
    seconds = time.perf_counter() - began
    answer = {"seconds": seconds, "hits": counters.cache_hits, "bytes": len(image.cubin)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
