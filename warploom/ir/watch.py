"""Where a watched launch notes what its warps wait for: the words of the tensor that the operations
of the family `watch` share with whoever reads it afterwards. Knows no operation and no device.

The tensor is i64, zero before the launch but for its head. Behind the head stands a section a
block, in the order of the grid; blocks for which there is none are only watched.
"""

from __future__ import annotations

from typing import NamedTuple

# Words of the head: some warp has given up, nanoseconds that a wait may take, the address of a
# copy in host memory (0: none), and whether somebody writes to that copy.
STOPPED, LIMIT, COPY, COPIED, HEAD = 0, 1, 2, 3, 8
# Words of a section: threads that have ended, left, or wait for the cluster, whether a thread sees
# to it that all do, and threads that have come to each barrier of the hardware. Then a row a warp
# and a row an mbarrier.
GONE, KEEPER, COME = 0, 1, 2
NUMBERS = 16
ROWS = COME + NUMBERS
# A row of a warp: its place (below), two words that say what it waits for, and what it saw when it
# left: the word of the mbarrier, the value of the flag.
ROW = 4
# A row of an mbarrier: arrivals so far, and the bytes announced in a phase below its number.
BARRIER_ROW = 2
BYTE_BITS = 24
# Places are numbers of waits from 1 on; 0 is the end of the role. The lowest bit of a row says that
# the warp left there.
ENDED = 1


def words(warps: int, barriers: int) -> int:
    """Words of a section."""
    return ROWS + ROW * warps + BARRIER_ROW * barriers


def barrier_rows(warps: int) -> int:
    """Where the rows of the mbarriers begin in a section."""
    return ROWS + ROW * warps


def delay(seed: int, place: int, block: int, warp: int, step: int) -> int:
    """A number drawn for a warp that comes to a place of synchronisation; 32 bits."""
    x = seed ^ (place * 0x9E3779B9) ^ (block * 0x85EBCA6B) ^ (warp * 0xC2B2AE35)
    x = (x ^ (step * 0x27D4EB2F)) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return x ^ (x >> 16)


class MbarrierWord(NamedTuple):
    """The 64 bits of an mbarrier in shared memory, as far as they are understood: arrivals and
    bytes that are missing, and arrivals of a phase."""

    pending: int
    lacks: int
    arrivals: int


_COUNT, _BYTES = (1 << 20) - 1, (1 << 21) - 1


def read_word(word: int) -> MbarrierWord:
    """What the word of an mbarrier says. PTX leaves it open; this is what sm_90 was seen to do:
    counts are kept negative, those of a phase at bit 1, bytes at bit 21, the pending one at bit
    43."""
    count, lacks, pending = (word >> 1) & _COUNT, (word >> 21) & _BYTES, (word >> 43) & _COUNT
    return MbarrierWord(-pending & _COUNT, _signed(-lacks & _BYTES), -count & _COUNT)


def written_word(pending: int, lacks: int, count: int, phase: int) -> int:
    """The word of an mbarrier in this state; the inverse of `read_word`."""
    word = (-count & _COUNT) << 1 | (-lacks & _BYTES) << 21 | (-pending & _COUNT) << 43
    word |= (phase & 1) << 63
    return word - (1 << 64) if word >> 63 else word


def _signed(lacks: int) -> int:
    return lacks - (_BYTES + 1) if lacks > _BYTES >> 1 else lacks
