"""Helpers of the prelude for waits that are watched: the words of `ir.watch` by address, and the
ways out of a kernel. One inline asm an instruction. Knows no operation.

Where a whole warp waits it goes on and leaves as one (`WARP`), decided by a vote: of paths that
threads might take for themselves the assembler would have products wait. A thread that is alone
there decides for itself. The threads of a warp write the same words.
"""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.prelude import INLINE, Helper, Prelude
from warploom.ir import watch as words

# Accesses to the notes (volatile is relaxed for the whole system). They order nothing: what a
# launch computes is ordered as without them.
_WORDS = f"""
{INLINE} long long watch_word(const long long* at) {{
  long long found;
  asm volatile("ld.volatile.global.s64 %0, [%1];" : "=l"(found) : "l"(at) : "memory");
  return found;
}}
{INLINE} void watch_set(long long* at, long long value) {{
  asm volatile("st.volatile.global.s64 [%0], %1;" :: "l"(at), "l"(value) : "memory");
}}
{INLINE} long long watch_add(long long* at, long long value) {{
  long long before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
    : "=l"(before) : "l"(at), "l"(value) : "memory");
  return before;
}}
{INLINE} long long watch_swap(long long* at, long long value) {{
  long long before;
  asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;"
    : "=l"(before) : "l"(at), "l"(value) : "memory");
  return before;
}}
{INLINE} void watch_raise(long long* at, long long value) {{
  asm volatile("red.relaxed.gpu.global.max.s64 [%0], %1;" :: "l"(at), "l"(value) : "memory");
}}
{INLINE} int watch_this_block() {{
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}}
{INLINE} long long* watch_section(long long* watch, int size, int words, int block) {{
  long long at = {words.HEAD} + (long long)block * words;
  return at + words <= size ? watch + at : (long long*)0;
}}
{INLINE} long long* watch_row(long long* section) {{
  return section + {words.ROWS} + {words.ROW} * (threadIdx.x / 32);
}}
"""

# What another thread of the warp noted when it left stays.
_HERE = f"""
{INLINE} void watch_here(long long* section, int place, long long a, long long b) {{
  if (!section) return;
  long long* row = watch_row(section);
  if (watch_word(row) & 1) return;
  watch_set(row + 1, a);
  watch_set(row + 2, b);
  watch_set(row, 2 * place);
}}
"""

# Of the first warp that leaves a block one thread (`KEEPER`) stays until all others have gone, or
# stops the launch. In a cluster all stay: a block must not be reached after its end. A thread that
# waits alone never stays: the rest of its warp votes, and a vote waits for all that are there.
_LEAVE = f"""
{INLINE} void watch_saw(long long* section, int place, long long a, long long b, long long seen) {{
  if (!section) return;
  long long* row = watch_row(section);
  if (watch_word(row) & 1) return;
  watch_set(row + 1, a);
  watch_set(row + 2, b);
  watch_set(row + 3, seen);
  watch_set(row, 2 * place + 1);
}}
template <int X, int Y, int Z>
{INLINE} bool watch_gone(long long* watch, int size, int words, int threads) {{
  for (int rank = 0; rank < X * Y * Z; rank++) {{
    long long* peer = watch_section(watch, size, words, watch_peer(rank, X, Y, Z));
    if (peer && watch_word(peer + {words.GONE}) < threads) return false;
  }}
  return true;
}}
template <int X, int Y, int Z>
{INLINE} void watch_stop(long long* watch, long long* section, int size, int words, int threads,
    bool keeper) {{
  long long since = clock_ns(), limit = watch_word(watch + {words.LIMIT});
  while (!watch_gone<X, Y, Z>(watch, size, words, threads)) {{
    if (!keeper || clock_ns() - since <= limit) continue;
    long long* copy = (long long*)watch_word(watch + {words.COPY});
    if (!copy || watch_swap(watch + {words.COPIED}, 1)) continue;
    for (int word = 0; word < words; word++) copy[1 + word] = watch_word(section + word);
    copy[0] = 1 + watch_this_block();
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile("trap;");
  }}
}}
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_leave(long long* watch, long long* section, int size, int words, int threads,
    int place, long long a, long long b, long long seen) {{
  if (DRAIN) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  watch_set(watch + {words.STOPPED}, 1);
  if (section) {{
    watch_saw(section, place, a, b, seen);
    watch_add(section + {words.GONE}, 1);
    bool keeper = WARP && !watch_swap(section + {words.KEEPER}, 1);
    if (WARP && (keeper || X * Y * Z > 1))
      watch_stop<X, Y, Z>(watch, section, size, words, threads, keeper);
  }}
  asm volatile("exit;");
}}
template <bool WARP>
{INLINE} bool watch_all(bool yes) {{
  if (!WARP) return yes;
  int all;
  asm volatile("{{ .reg .pred p, q; setp.ne.b32 p, %1, 0; vote.sync.all.pred q, p, 0xffffffff; "
    "selp.b32 %0, 1, 0, q; }}" : "=r"(all) : "r"((int)yes) : "memory");
  return all != 0;
}}
template <bool WARP>
{INLINE} bool watch_over(long long* watch, long long since) {{
  bool over = watch_word(watch + {words.STOPPED}) != 0
    || clock_ns() - since > watch_word(watch + {words.LIMIT});
  return !watch_all<WARP>(!over);
}}
"""

_BARRIER = f"""
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_barrier(long long* watch, int size, int words, int threads, int place, u32 at,
    int parity, int number) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  watch_here(section, place, number, parity);
  long long since = clock_ns();
  bool come;
  do {{
    int done;
    asm volatile("{{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.b32 %0, 1, 0, p; }}" : "=r"(done) : "r"(at), "r"(parity) : "memory");
    come = watch_all<WARP>(done != 0);
  }} while (!come && !watch_over<WARP>(watch, since));
  if (come) return;
  long long seen;
  asm volatile("ld.shared.b64 %0, [%1];" : "=l"(seen) : "r"(at) : "memory");
  watch_leave<WARP, DRAIN, X, Y, Z>(
    watch, section, size, words, threads, place, number, parity, seen);
}}
"""

_FLAG = f"""
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_flag(long long* watch, int size, int words, int threads, int place,
    const int* at, int least, long long element) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  watch_here(section, place, element, least);
  long long since = clock_ns();
  bool come;
  int found;
  do {{
    asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    come = watch_all<WARP>((int)((unsigned)found - (unsigned)least) >= 0);
  }} while (!come && !watch_over<WARP>(watch, since));
  if (come) return;
  watch_leave<WARP, DRAIN, X, Y, Z>(
    watch, section, size, words, threads, place, element, least, found);
}}
"""

# The element of a word with the epoch; one that the thread does not want counts as come.
_WANTED = f"""
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_wanted(long long* watch, int size, int words, int threads, int place,
    const long long* at, int epoch, long long element, bool wants) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  long long since = clock_ns();
  bool come;
  int found = 0;
  do {{
    if (wants) found = (int)(watch_word(at) >> 32);
    come = watch_all<WARP>(!wants || found == epoch);
  }} while (!come && !watch_over<WARP>(watch, since));
  if (come) return;
  if (wants && found != epoch) watch_saw(section, place, element, epoch, (u32)found);
  watch_leave<WARP, DRAIN, X, Y, Z>(watch, section, size, words, threads, place, element, epoch, 0);
}}
"""

_MEET = f"""
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_meet(long long* watch, int size, int words, int threads, int place, int number,
    int all, bool waits) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  if (!section) return;
  long long* come = section + {words.COME} + number;
  long long target = (watch_add(come, 1) / all + 1) * all;
  if (!waits) return;
  watch_here(section, place, number, all);
  long long since = clock_ns();
  bool met;
  do {{
    met = watch_all<WARP>(watch_word(come) >= target);
  }} while (!met && !watch_over<WARP>(watch, since));
  if (met) return;
  watch_leave<WARP, DRAIN, X, Y, Z>(watch, section, size, words, threads, place, number, all, 0);
}}
"""

# Bytes are counted below the number of their phase: those of a later one begin at nothing.
_ARRIVE = f"""
{INLINE} void watch_arrive(long long* watch, int size, int words, int block, int row, int count,
    int arrivals, int bytes) {{
  long long* section = watch_section(watch, size, words, block);
  if (!section) return;
  long long phase = watch_add(section + row, count) / arrivals;
  if (!bytes) return;
  watch_raise(section + row + 1, phase << {words.BYTE_BITS});
  watch_add(section + row + 1, bytes);
}}
"""

_PEER = f"""
{INLINE} int watch_peer(int rank, int x, int y, int z) {{
  int bx = blockIdx.x / x * x + rank % x;
  int by = blockIdx.y / y * y + rank / x % y;
  int bz = blockIdx.z / z * z + rank / (x * y);
  return bx + gridDim.x * (by + gridDim.y * bz);
}}
"""

# Who waits for the cluster counts as gone: it is let go when the others are.
_BEHIND = f"""
template <bool WARP, bool DRAIN, int X, int Y, int Z>
{INLINE} void watch_behind(long long* watch, int size, int words, int threads, int place) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  if (section) watch_add(section + {words.GONE}, -1);
  if (watch_all<WARP>(watch_word(watch + {words.STOPPED}) == 0)) return;
  watch_leave<WARP, DRAIN, X, Y, Z>(watch, section, size, words, threads, place, 0, 0, 0);
}}
"""

_AT = f"""
{INLINE} void watch_at(long long* watch, int size, int words, int place) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  watch_here(section, place, 0, 0);
  if (section) watch_add(section + {words.GONE}, 1);
}}
"""

_END = f"""
{INLINE} void watch_end(long long* watch, int size, int words) {{
  long long* section = watch_section(watch, size, words, watch_this_block());
  if (!section) return;
  long long* row = watch_row(section);
  if (!(watch_word(row) & 1)) watch_set(row, {words.ENDED});
  watch_add(section + {words.GONE}, 1);
}}
"""

# `ir.watch.delay`, then up to 16 microseconds in powers of two, or nothing.
_DELAY = f"""
{INLINE} void watch_delay(u32 seed, u32 place, u32 step) {{
  u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  u32 x = seed ^ place * 0x9E3779B9u ^ block * 0x85EBCA6Bu ^ threadIdx.x / 32 * 0xC2B2AE35u;
  x ^= step * 0x27D4EB2Fu;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  x ^= x >> 16;
  if (x & 1) return;
  asm volatile("nanosleep.u32 %0;" :: "r"(32u << (x >> 8) % 10) : "memory");
}}
"""

_PARTS = {
    "words": (_WORDS, ()),
    "here": (_HERE, ("words",)),
    "leave": (_LEAVE, ("words", "peer")),
    "barrier": (_BARRIER, ("here", "leave")),
    "flag": (_FLAG, ("here", "leave")),
    "wanted": (_WANTED, ("leave",)),
    "meet": (_MEET, ("here", "leave")),
    "arrive": (_ARRIVE, ("words",)),
    "peer": (_PEER, ()),
    "behind": (_BEHIND, ("leave",)),
    "at": (_AT, ("here",)),
    "end": (_END, ("words",)),
    "delay": (_DELAY, ()),
}


def use(prelude: Prelude, name: str) -> str:
    """Enter a helper with those that it calls; returns its name."""
    text, needs = _PARTS[name]
    for other in needs:
        use(prelude, other)
    if name == "leave":
        async_helpers.use(prelude, "clock_ns")
    prelude.make(f"watch_{name}", lambda: Helper(text, ("u32",)))
    return f"watch_{name}"
