"""How `ir.watch` reads the word of an mbarrier, held against a GPU: PTX does not say what the 64
bits mean, and reports of debug builds are made from them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest

import warploom as wl
from warploom.base.target import SM_90A
from warploom.codegen.emitter import CudaSource
from warploom.ir import watch as words
from warploom.runtime import driver, nvrtc

# What is done to a barrier, a word to be read behind each.
INIT, ARRIVE, EXPECT, BRING = range(4)
INSTRUCTIONS = {
    INIT: "mbarrier.init.shared::cta.b64 [%0], %1;",
    ARRIVE: "mbarrier.arrive.shared::cta.b64 _, [%0], %1;",
    EXPECT: "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;",
    BRING: "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;",
}
MOST_BYTES = (1 << 20) - 1
SEQUENCES = {
    "bytes": [(INIT, 1), (EXPECT, 16384), (ARRIVE, 1), (BRING, 8192), (BRING, 8192)],
    "phases": [(INIT, 4), (ARRIVE, 1), (ARRIVE, 3), (ARRIVE, 2), (EXPECT, 48), (ARRIVE, 2)],
    "bytes_last": [(INIT, 2), (ARRIVE, 1), (EXPECT, 512), (ARRIVE, 1), (BRING, 500), (BRING, 12)],
    "not_announced": [(INIT, 2), (BRING, 1000), (EXPECT, 2000), (BRING, 900), (ARRIVE, 1)],
    "most": [(INIT, MOST_BYTES), (EXPECT, MOST_BYTES), (ARRIVE, MOST_BYTES - 1)],
    "many": [(INIT, 128), (ARRIVE, 127), (EXPECT, 4096), (BRING, 4096), (ARRIVE, 1)],
}


@dataclass
class Model:
    """The state of an mbarrier as PTX describes it."""

    count: int = 0
    pending: int = 0
    lacks: int = 0
    phase: int = 0

    def do(self, what: int, number: int) -> None:
        if what == INIT:
            self.count = self.pending = number
        elif what == ARRIVE:
            self.pending -= number
        else:
            self.lacks += number if what == EXPECT else -number
        if not self.pending and not self.lacks:
            self.pending, self.phase = self.count, self.phase + 1


def source() -> str:
    """A kernel of one thread that does `steps` to a barrier. Operations of a barrier are done
    behind the thread, so it pauses before it reads."""
    cases = "".join(
        f'      case {what}: asm volatile("{text}" :: "r"(at), "r"(number) : "memory"); break;\n'
        for what, text in INSTRUCTIONS.items()
    )
    return f"""
extern "C" __global__ void probe(const int* steps, long long* found, int count) {{
  __shared__ __align__(8) long long barrier;
  if (threadIdx.x) return;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  for (int i = 0; i < count; i++) {{
    int number = steps[2 * i + 1];
    switch (steps[2 * i]) {{
{cases}    }}
    __threadfence_block();
    __nanosleep(20000);
    asm volatile("ld.volatile.shared.b64 %0, [%1];" : "=l"(found[i]) : "r"(at) : "memory");
  }}
}}
"""


def compiled() -> bytes:
    return nvrtc.compile_cubin(CudaSource(source(), "probe", 32, 0), SM_90A).cubin


def test_the_probe_compiles():
    assert compiled()


@pytest.mark.gpu
@pytest.mark.parametrize("name", SEQUENCES)
def test_the_words_of_the_hardware(name):
    """Behind each operation the word is the one that the state of PTX gives, and reads as it."""
    steps, model = SEQUENCES[name], Model()
    given = wl.to_device(np.array(steps, np.int32))
    out = wl.to_device(np.zeros(len(steps), np.int64))
    loaded = driver.load(compiled(), "probe", 0, 0, 32)
    held = ctypes.c_uint64(given.address), ctypes.c_uint64(out.address), ctypes.c_int(len(steps))
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, held))
    driver.launch(loaded, 0, 0, (1, 1, 1), 32, ctypes.addressof(pointers))
    for step, word in zip(steps, wl.to_numpy(out).tolist(), strict=True):
        model.do(*step)
        state = model.pending, model.lacks, model.count
        assert words.read_word(word) == state, (step, hex(word & (1 << 64) - 1))
        assert words.written_word(*state, model.phase) == word
