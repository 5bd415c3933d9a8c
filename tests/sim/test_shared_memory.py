"""Shared memory: each block its own piece, bounds and alignment within it, unwritten at first."""

import numpy as np
import pytest

from warploom.base.errors import CheckError
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import verify_kernel
from warploom.sim.program import prepare

TEXT = """\
kernel @k(%x: tensor<f32, 1, align 16, extent 1>, %y: tensor<f32, 1, align 16, extent 1>, \
%shift: i32@grid) stage=machine warps=1 shared=256 written=1 {{
  %lane: i32[1] = index.lane() [rank=1]
  %i: i32@block = scalar.block_id() [axis=0]
  %c: i32@grid = scalar.const() [number=32, dtype=i32]
  %base: i32@block = scalar.binary(%i, %c) [kind="mul"]
  %other: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=128]
  %b: buffer<f32, 32> = shared_memory.buffer() [dtype=f32, elements=32, at=0]
  %t: f32[1] = global_memory.load(%x, %base, %lane, _, _) [axis=0, vec=1]
  %s: i32[1] = registers.splat(%shift) [rank=1]
  %to: i32[1] = registers.binary(%lane, %s) [kind="add"]
  {store}
  sync.warp() [why=""]
  %u: f32[1] = shared_memory.load(%b, %lane, _) [axis=0, vec=1]
  global_memory.store(%y, %u, %base, %lane, _) [axis=0, vec=1]
  control.yield([])
}}
"""
PLAIN = "shared_memory.store(%b, %t, %to, _) [axis=0, vec=1]"
GUARDED = """\
%n: i32[1] = registers.splat(%c) [rank=1]
  %p: bool[1] = registers.compare(%to, %n) [kind="lt"]
  shared_memory.store(%b, %t, %to, %p) [axis=0, vec=1]"""
PAIRS = """\
%two: f32[2] = registers.spread(%t) [extents=(2,)]
  shared_memory.store(%other, %two, %to, _) [axis=0, vec=2]"""


def program(store):
    kernel = parse_kernel(TEXT.format(store=store))
    verify_kernel(kernel)
    return prepare(kernel)


def arrays(blocks):
    x = np.arange(blocks * 32, dtype=np.float32)
    return x, np.zeros_like(x)


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_blocks_do_not_see_each_other(blocks):
    x, y = arrays(blocks)
    program(PLAIN).run((blocks,), (x, y, 0))
    assert np.array_equal(x, y)


def test_out_of_a_buffer_is_out_of_bounds_although_memory_goes_on():
    x, y = arrays(3)
    with pytest.raises(CheckError) as caught:
        program(PLAIN).run((3,), (x, y, 1))
    (report,) = caught.value.reports
    assert report.code == "M001"
    assert report.message == "`k` writes to `b` out of bounds"
    assert report.facts["element"] == 32
    assert report.notes[1] == "`b` has 32 elements of f32"


def test_what_nobody_wrote_reads_as_nan_and_is_found():
    x, y = arrays(3)
    guarded = program(GUARDED)
    guarded.run((3,), (x, y, 5))
    rows = y.reshape(3, 32)
    assert np.isnan(rows[:, :5]).all()
    assert np.array_equal(rows[:, 5:], x.reshape(3, 32)[:, :27])
    (found,) = guarded.run((3,), (x, y, 5), checked=True).findings
    assert found.code == "M002"
    assert found.notes == ("block (0, 0, 0), element 0 of `b`",)
    assert guarded.run((3,), (x, y, 0), checked=True).findings == []


def test_memory_of_an_earlier_batch_does_not_shine_through():
    guarded = program(GUARDED)
    x, y = arrays(2)
    guarded.run((2,), (x, y, 0))
    guarded.run((2,), (x, y, 9))
    assert np.isnan(y.reshape(2, 32)[:, :9]).all()


def test_misaligned_vectors_in_shared_memory():
    x, y = arrays(1)
    with pytest.raises(CheckError) as caught:
        program(PAIRS).run((1,), (x, y, 0))
    assert caught.value.code == "M003"
