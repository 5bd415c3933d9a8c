"""Helpers of the prelude that touch memory or exchange lanes: one inline asm each.

A helper moves `vec` registers, STEP apart, with one instruction of at most 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.base.dtypes import DType
from warploom.codegen.c_types import NARROW, c_type, memory_type
from warploom.codegen.prelude import CACHE_POLICY, INLINE, Helper, Prelude, predicated


@dataclass(frozen=True, slots=True)
class Words:
    """The machine words of one access: C++ type, asm constraint, PTX type, their number, and how
    many elements stand in each."""

    c: str
    constraint: str
    ptx: str
    count: int
    elements: int


def words_of(dtype: DType, vec: int) -> Words:
    """How `vec` elements travel in one instruction; raises ValueError where none moves so many."""
    total = dtype.bytes * vec
    if total not in (1, 2, 4, 8, 16):
        raise ValueError(f"no instruction moves {vec} × {dtype} = {total} bytes")
    if dtype.name == "f32":
        return Words("float", "f", "f32", vec, 1)
    if dtype.name == "f64":
        return Words("double", "d", "f64", vec, 1)
    if dtype.bits == 64:
        return Words("u64", "l", "b64", vec, 1)
    if total >= 4:
        return Words("u32", "r", "b32", total // 4, 4 // dtype.bytes)
    return Words("unsigned short", "h", "u8" if total == 1 else "b16", 1, vec)


def _unpacked(dtype: DType, word: str, shift: int) -> str:
    """The assignment `to… = …` of one element out of a word, right-hand side and member."""
    moved = f"{word} >> {shift}" if shift else word
    if dtype.name in NARROW:
        return f".bits = {moved}"
    if dtype.is_bool:
        return f" = ({moved} & 0xff) != 0" if shift else f" = ({word} & 0xff) != 0"
    if dtype.name in ("f32", "f64"):
        return f" = {word}"
    return f" = ({c_type(dtype)})({moved})" if shift else f" = ({c_type(dtype)}){word}"


def _packed(dtype: DType, elements: list[str], word: str) -> str:
    """One word out of register elements."""
    if dtype.name in ("f32", "f64"):
        return elements[0]
    parts = []
    for n, element in enumerate(elements):
        if dtype.name in NARROW:
            raw = f"{element}.bits"
        elif dtype.bits < 32 and not dtype.is_bool:
            raw = f"(unsigned {'char' if dtype.bits == 8 else 'short'}){element}"
        else:
            raw = element
        shift = n * dtype.bits
        parts.append(f"({word}){raw} << {shift}" if shift else f"({word}){raw}")
    return " | ".join(parts)


def _registers(words: Words, first: int) -> str:
    names = [f"%{first + n}" for n in range(words.count)]
    return names[0] if words.count == 1 else "{" + ", ".join(names) + "}"


def _vector(words: Words) -> str:
    return f".v{words.count}.{words.ptx}" if words.count > 1 else f".{words.ptx}"


def _needs(dtype: DType, words: Words) -> tuple[str, ...]:
    names = {dtype.name, words.c}
    return tuple(n for n in ("u32", "u64", *NARROW) if n in names)


def _from_arguments(space: str, dtype: DType) -> tuple[str, str, str]:
    """Parameters of the memory side, the statement that makes the address, its asm operand.
    Memory is global, or shared at a byte address of the block or the cluster."""
    if space == "global":
        return f"{memory_type(dtype)}* at", "", '"l"(at)'
    size = dtype.bytes
    return "u32 buffer, int offset", f"  u32 at = buffer + (u32)offset * {size};\n", '"r"(at)'


def _load(
    name: str,
    instruction: str,
    space: str,
    dtype: DType,
    vec: int,
    guard: str,
    ordered: bool,
    policy: str = "",
) -> Helper:
    """Text of a load: `guard` is "", "p" or "p, other"; `policy` the last operand of asm."""
    words = words_of(dtype, vec)
    where, make, operand = _from_arguments(space, dtype)
    where = f"const {where}" if space == "global" else where
    reg = c_type(dtype)
    parameters = f"{reg}* to, {where}"
    parameters += ", bool p" if guard else ""
    parameters += f", {reg} other" if guard == "p, other" else ""
    names = [f"w{n}" for n in range(words.count)]
    start = ""
    if guard == "p, other":
        same = _packed(dtype, ["other"] * words.elements, words.c)
        start = f" = {same}"
    elif guard:
        start = " = 0"
    last = f", %{words.count + 1 + bool(guard)}" if policy else ""
    body = f"{instruction}{_vector(words)} {_registers(words, 0)}, [%{words.count}]{last};"
    if guard:
        body = predicated(body, words.count + 1)
    outputs = ", ".join(f'"{"+" if guard else "="}{words.constraint}"({n})' for n in names)
    inputs = operand + (', "r"((int)p)' if guard else "") + (f", {policy}" if policy else "")
    clobber = ' : "memory"' if ordered else ""
    stores = []
    for n in range(vec):
        word, place = divmod(n, words.elements)
        register = f"to[{n} * STEP]" if vec > 1 else "*to"
        if dtype.name in NARROW and vec == 1:
            register = "to[0]"
        stores.append(f"{register}{_unpacked(dtype, names[word], place * dtype.bits)};")
    text = (
        f"{_template(vec)}{INLINE} void {name}({parameters}) {{\n{make}"
        f"  {words.c} {', '.join(n + start for n in names)};\n"
        f'  asm volatile("{body}" : {outputs} : {inputs}{clobber});\n'
        f"  {' '.join(stores)}\n}}"
    )
    return Helper(text, (*_needs(dtype, words), *(("u32",) if space != "global" else ())))


def _store(
    name: str,
    instruction: str,
    space: str,
    dtype: DType,
    vec: int,
    guard: str,
    policy: str = "",
    barrier: bool = False,
) -> Helper:
    """Text of a store; with `barrier` its bytes complete there."""
    words = words_of(dtype, vec)
    where, make, operand = _from_arguments(space, dtype)
    where += ", u32 barrier" if barrier else ""
    parameters = f"{where}, const {c_type(dtype)}* from" + (", bool p" if guard else "")
    names = [f"w{n}" for n in range(words.count)]
    held = []
    for n, word in enumerate(names):
        elements = []
        for e in range(words.elements):
            number = n * words.elements + e
            elements.append(f"from[{number} * STEP]" if vec > 1 else "from[0]")
        held.append(f"{word} = {_packed(dtype, elements, words.c)}")
    last = f", %{words.count + 1 + bool(guard)}" if policy else ""
    last = f", [%{words.count + 1 + bool(guard)}]" if barrier else last
    body = f"{instruction}{_vector(words)} [%0], {_registers(words, 1)}{last};"
    if guard:
        body = predicated(body, words.count + 1)
    inputs = [operand, *(f'"{words.constraint}"({n})' for n in names)]
    if guard:
        inputs.append('"r"((int)p)')
    if policy or barrier:
        inputs.append(policy or '"r"(barrier)')
    text = (
        f"{_template(vec)}{INLINE} void {name}({parameters}) {{\n{make}"
        f"  {words.c} {', '.join(held)};\n"
        f'  asm volatile("{body}" :: {", ".join(inputs)} : "memory");\n}}'
    )
    return Helper(text, (*_needs(dtype, words), *(("u32",) if space != "global" else ())))


def _template(vec: int) -> str:
    return "template <int STEP = 1>\n" if vec > 1 else ""


# Spaces of a cluster as names of helpers have them.
PEER = "shared::cluster"
_WORDS = {PEER: "peer"}


def load(
    prelude: Prelude,
    space: str,
    dtype: DType,
    vec: int,
    *,
    guard: str = "",
    read_only: bool = False,
    cache: str = "",
) -> str:
    """Enter a load helper and return its name.

    `guard`: "" reads always; "p" gives zero where the predicate is false; "p, other" gives `other`.
    """
    parts = [
        "ld",
        _WORDS.get(space, space),
        *(["nc"] if read_only else []),
        *([cache] if cache else []),
    ]
    name = "_".join([*parts, f"{dtype.name}x{vec}"])
    instruction, policy = _cached(f"ld.{space}" + (".nc" if read_only else ""), cache)
    prelude.make(
        f"{name}({guard})",
        lambda: _load(name, instruction, space, dtype, vec, guard, not read_only, policy),
    )
    return name


def _cached(instruction: str, cache: str) -> tuple[str, str]:
    """An instruction under a policy of both caches, and the operand that holds that of the second
    level."""
    if not cache:
        return instruction, ""
    first = f"{instruction}.L1::{cache}"
    if cache not in CACHE_POLICY:
        return first, ""
    return f"{first}.L2::cache_hint", f'"l"(0x{CACHE_POLICY[cache]:x}ull)'


def prefetch(prelude: Prelude, dtype: DType, level: str, *, guard: bool) -> str:
    """Enter the prefetch of the line of one address and return its name."""
    name = f"prefetch_{level}_{dtype.name}"
    body = f"prefetch.global.{level} [%0];"
    if guard:
        body = predicated(body, 1)
    operands = '"l"(at)' + (', "r"((int)p)' if guard else "")
    parameters = f"const {memory_type(dtype)}* at" + (", bool p" if guard else "")
    text = f'{INLINE} void {name}({parameters}) {{\n  asm volatile("{body}" :: {operands});\n}}'
    needs = (dtype.name,) if dtype.name in NARROW else ()
    prelude.make(f"{name}({guard})", lambda: Helper(text, needs))
    return name


def store(
    prelude: Prelude, space: str, dtype: DType, vec: int, *, guard: str = "", cache: str = ""
) -> str:
    """Enter a store helper and return its name; `guard` is "" or "p"."""
    name = "_".join(
        ["st", _WORDS.get(space, space), *([cache] if cache else []), f"{dtype.name}x{vec}"]
    )
    instruction, policy = _cached(f"st.{space}", cache)
    prelude.make(
        f"{name}({guard})", lambda: _store(name, instruction, space, dtype, vec, guard, policy)
    )
    return name


def send(prelude: Prelude, dtype: DType, vec: int, *, guard: str = "", alone: bool = False) -> str:
    """Enter a store to a peer that is done later, and return its name; `guard` is "" or "p".
    `alone`: to the block itself, which is no cluster."""
    name = f"st_async_{dtype.name}x{vec}"
    if alone:
        stored = store(prelude, "shared", dtype, vec, guard=guard)
        prelude.make(
            f"{name}_alone({guard})",
            lambda: _send_alone(f"{name}_alone", stored, dtype, vec, guard),
        )
        return f"{name}_alone"
    instruction = f"st.async.weak.{PEER}.mbarrier::complete_tx::bytes"
    prelude.make(
        f"{name}({guard})",
        lambda: _store(name, instruction, PEER, dtype, vec, guard, barrier=True),
    )
    return name


def _send_alone(name: str, stored: str, dtype: DType, vec: int, guard: str) -> Helper:
    """Text of a store to the block's own memory, behind which its bytes complete on a barrier."""
    given, test, p = (", bool p", "if (p) ", ", p") if guard else ("", "", "")
    complete = "fence.acq_rel.cta; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
    inputs = f'"r"(barrier), "n"({dtype.bytes * vec})'
    text = (
        f"{_template(vec)}{INLINE} void {name}(u32 buffer, int offset, u32 barrier, "
        f"const {c_type(dtype)}* from{given}) {{\n"
        f"  {stored}{'<STEP>' if vec > 1 else ''}(buffer, offset, from{p});\n"
        f'  {test}asm volatile("{complete}" :: {inputs} : "memory");\n}}'
    )
    return Helper(text, ("u32",))


_SHUFFLES = {"xor": ("bfly", "mask"), "idx": ("idx", "lane")}


def shuffle(prelude: Prelude, dtype: DType, kind: str) -> str:
    """Enter the exchange of one register of a dtype, with lane xor mask ("xor") or with a lane by
    number ("idx"), and return its name."""
    name = f"shfl_{kind}_{dtype.name}"
    prelude.make(name, lambda: _shuffle(name, dtype, *_SHUFFLES[kind]))
    return name


def shuffles_of(dtype: DType) -> int:
    """Shuffle instructions that one register takes."""
    return 2 if dtype.bits == 64 else 1


def matrices(prelude: Prelude, dtype: DType, *, load: bool, turned: bool) -> str:
    """Enter the move of four matrices of 8 x 8 elements of 16 bits, two registers of each, and
    return its name."""
    name = f"{'ld' if load else 'st'}_shared_matrices_{dtype.name}" + ("_turned" if turned else "")
    prelude.make(name, lambda: _matrices(name, dtype, load, turned))
    return name


def _matrices(name: str, dtype: DType, load: bool, turned: bool) -> Helper:
    held = [f"{m}{e}" for m in "abcd" for e in (0, 1)]
    form = f"{'ld' if load else 'st'}matrix.sync.aligned.m8n8.x4{'.trans' if turned else ''}"
    words = [f"w{n}" for n in range(4)]
    pairs = list(zip(words, held[::2], held[1::2], strict=True))
    kind = f"{dtype.name}&" if load else dtype.name
    head = (
        f"{INLINE} void {name}(u32 buffer, int offset, {', '.join(f'{kind} {x}' for x in held)}) "
        "{\n  u32 at = buffer + (u32)offset * 2;\n"
    )
    if load:
        outputs = ", ".join(f'"=r"({w})' for w in words)
        parts = " ".join(f"{low}.bits = {w}; {high}.bits = {w} >> 16;" for w, low, high in pairs)
        text = (
            f"{head}  u32 {', '.join(words)};\n"
            f'  asm volatile("{form}.shared.b16 {{%0, %1, %2, %3}}, [%4];"\n'
            f'    : {outputs} : "r"(at) : "memory");\n  {parts}\n}}'
        )
    else:
        made = ", ".join(f"{w} = {low}.bits | (u32){high}.bits << 16" for w, low, high in pairs)
        inputs = ", ".join(f'"r"({w})' for w in words)
        text = (
            f"{head}  u32 {made};\n"
            f'  asm volatile("{form}.shared.b16 [%0], {{%1, %2, %3, %4}};"\n'
            f'    :: "r"(at), {inputs} : "memory");\n}}'
        )
    return Helper(text, ("u32", dtype.name))


_BITS = {
    "f32": ("__float_as_uint(x)", "__uint_as_float(w)"),
    "f16": ("x.bits", "f16{(unsigned short)w}"),
    "bf16": ("x.bits", "bf16{(unsigned short)w}"),
    "f8e4m3": ("x.bits", "f8e4m3{(unsigned char)w}"),
    "f8e5m2": ("x.bits", "f8e5m2{(unsigned char)w}"),
    "bool": ("x", "w != 0"),
}


def _shuffle(name: str, dtype: DType, form: str, by: str) -> Helper:
    c = c_type(dtype)
    step = f"shfl.sync.{form}.b32 %0, %0, %1, 0x1f, 0xffffffff;"
    head = f"{INLINE} {c} {name}({c} x, int {by}) {{\n"
    kind = tuple(n for n in NARROW if n == dtype.name)
    if dtype.bits < 64:
        into, back = _BITS.get(dtype.name, ("x", f"({c})w"))
        text = (
            f"{head}  u32 w = {into};\n"
            f'  asm volatile("{step}" : "+r"(w) : "r"({by}));\n  return {back};\n}}'
        )
        return Helper(text, ("u32", *kind))
    into = "__double_as_longlong(x)" if dtype.is_float else "x"
    back = "__longlong_as_double(w)" if dtype.is_float else f"({c})w"
    text = (
        f"{head}  u64 w = {into};\n  u32 low = w, high = w >> 32;\n"
        f'  asm volatile("{step}" : "+r"(low) : "r"({by}));\n'
        f'  asm volatile("{step}" : "+r"(high) : "r"({by}));\n'
        f"  w = low | (u64)high << 32;\n  return {back};\n}}"
    )
    return Helper(text, ("u32", "u64"))
