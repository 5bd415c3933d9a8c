"""`wl.kernel`: a Python function as an object that compiles itself for the arguments it meets."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, overload

from warploom.base.errors import Error, error
from warploom.frontend.signature import Signature, parse_signature
from warploom.frontend.stops import Stop
from warploom.runtime import variant as variants
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM
from warploom.runtime.captured import Watch, watch
from warploom.runtime.compile import Request
from warploom.runtime.examples import Make
from warploom.runtime.grid import ALONE, Grid, Ways
from warploom.runtime.launch import Call, Launcher
from warploom.runtime.stats import count_variant, refuse_when_frozen

Example = Callable[[Make], Call]
_OPTIONS = ("fast_math", "strict", "debug", "delays", "trace", "warps")
_LAUNCH_OPTIONS = ("cluster", "warps", "cooperative", "pdl", "stream")
MOST_WARPS = 32
LIMIT = 2.0  # seconds that a wait of a debug build may take on a GPU
_MOST_SECONDS = 3600


class Kernel:
    """A kernel: `k[grid](…)` launches it, `k.launch(grid, …)` takes options.

    The function is read, never called. It is compiled at the first launch with arguments of a class
    (dtype, kind of strides, alignment) and constants that it has not met.
    """

    __warploom__ = "kernel"

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        fast_math: bool = False,
        strict: bool = False,
        debug: bool | float = False,
        delays: int | None = None,
        trace: bool = False,
        warps: int = 4,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self.name: str = function.__name__
        self.signature: Signature = parse_signature(function)
        self.fast_math = fast_math
        self.strict = strict
        self.debug = _seconds(debug)
        self.delays = _seed(delays, self.debug)
        self.trace = trace
        self.warps = _warps(warps)
        self.stops: tuple[Stop, ...] = ()
        self.examples: dict[str, Example] = {}
        self._variants: dict[Any, variants.Variant] = {}
        self._lock = threading.RLock()
        self._watch: Watch | None = None

    def __repr__(self) -> str:
        return f"<wl.kernel {self.__wrapped__.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self.name
        hint = f"{name}[grid]({', '.join(p.name for p in self.signature.parameters)})"
        raise error("H001", f"kernel `{name}` was called without a grid", hint=hint)

    def __getitem__(self, grid: Any) -> Launcher:
        return Launcher(self, grid, self.warps, None)

    def launch(
        self,
        grid: Any,
        *,
        cluster: tuple[int, ...] | None = None,
        warps: int | None = None,
        cooperative: bool = False,
        pdl: bool = False,
        stream: Any = None,
        **unknown: Any,
    ) -> Launcher:
        """A launcher with options.

        grid: blocks along up to three axes. cluster: blocks of a cluster along them, at most 16.
        warps: warps of a block (1 to 32). cooperative: all blocks run at the same time, and may
        wait for each other (`wl.wait`). pdl: the launch may begin while the one before it in the
        stream ends; its kernel has `wl.wait_for_previous()`. stream: a torch or CuPy stream, an
        object with `__cuda_stream__`, or the driver's handle; by default torch's current stream for
        its tensors, else the default stream; stream and pdl have no meaning on the simulator.
        Raises LaunchError H015, H016 for the grid, H021 for warps, stream and another name, H030,
        H031 for the cluster, H032 for pdl, H040 and H041 for cooperative.
        """
        for name in unknown:
            hint = f"options: {', '.join(_LAUNCH_OPTIONS)}"
            raise error("H021", f"there is no launch option `{name}`", hint=hint)
        for name, value in (("cooperative", cooperative), ("pdl", pdl)):
            if not isinstance(value, bool):
                text = f"{name}={value!r:.80} is no choice"
                raise error("H021", text, hint="give True or False")
        warps = self.warps if warps is None else _warps(warps)
        return Launcher(self, grid, warps, stream, cluster, Ways(pdl, cooperative))

    def options(self, **options: Any) -> Kernel:
        """A variant of this kernel with other compile options: fast_math, strict, debug, delays,
        trace, warps.

        Raises LaunchError H021 for another name.
        """
        _known_options(options)
        held = {name: getattr(self, name) for name in _OPTIONS}
        other = Kernel(self.__wrapped__, **{**held, **options})
        other.examples, other.stops = self.examples, self.stops
        return other

    def stopping(self, *stops: Stop) -> Kernel:
        """This kernel with a prompt before the statements at `(file, line)` pairs: what
        `breakpoint()` there would do. Its launches raise LaunchError H033 for a line without a
        statement of it, and on a GPU.
        """
        other = self.options()
        other.stops = (*self.stops, *stops)
        return other

    @overload
    def example(self, name: Example) -> Example: ...
    @overload
    def example(self, name: str) -> Callable[[Example], Example]: ...
    def example(self, name: Any) -> Any:
        """Enter a function `make -> call` as an example: `@k.example` or `@k.example("name")`."""
        if isinstance(name, str):
            return functools.partial(self._enter, name)
        return self._enter("default", name)

    def _enter(self, name: str, make: Example) -> Example:
        self.examples[name] = make
        return make

    def example_call(self, name: str = "", device: str = SIM, seed: int = 0) -> Call:
        """The call of an example (the first one unless named); raises LaunchError H025."""
        if not self.examples:
            text = f"kernel `{self.name}` has no example"
            raise error("H025", text, hint=f"add one:\n{self.skeleton()}")
        if name and name not in self.examples:
            names = ", ".join(self.examples)
            raise error(
                "H025", f"kernel `{self.name}` has no example `{name}`", hint=f"it has: {names}"
            )
        make = self.examples[name or next(iter(self.examples))]
        call = make(Make(device, seed))
        if not isinstance(call, Call):
            hint = f"return {self.name}.launch(grid).call(…)"
            raise error("H025", f"an example of `{self.name}` returned no call", hint=hint)
        return call

    def skeleton(self) -> str:
        """An example to fill in, as source text."""
        arguments = []
        for parameter in self.signature.parameters:
            if parameter.kind == "tensor":
                arguments.append("make.randn((64, 64), wl.f32)")
            elif parameter.kind == "scalar":
                arguments.append("1")
            else:
                arguments.append(f"{parameter.name}=16")
        return (
            f"@{self.name}.example\ndef _small(make):\n"
            f"    return {self.name}.launch(1).call({', '.join(arguments)})"
        )

    # Variants --------------------------------------------------------------------------------

    def request(
        self, arguments: Arguments, warps: int, cluster: Grid = ALONE, *, watched: bool = False
    ) -> Request:
        """What the variant for these arguments is compiled from, `watched` as debug builds are on a
        GPU or not."""
        delays = self.delays if watched and self.delays is not None else -1
        return Request(
            self.__wrapped__,
            self.name,
            arguments.types(),
            arguments.constants,
            warps,
            cluster,
            self.fast_math,
            self.strict,
            self.stops,
            watched=watched,
            delays=delays,
        )

    def variant(
        self, arguments: Arguments, warps: int, cluster: Grid = ALONE, *, watched: bool = False
    ) -> variants.Variant:
        """The compiled variant for these arguments, `watched` or not; compiles it at the first
        time."""
        key = (arguments.key, warps, cluster, arguments.place, watched)
        if self._watch is not None and self._watch.is_current():
            found = self._variants.get(key)
            if found is not None:
                return found
        with self._lock:
            if self._watch is None or not self._watch.is_current():
                # A captured value is a constant of the code: code with the old one goes.
                self._variants.clear()
                self._watch = watch(self.__wrapped__)
            found = self._variants.get(key)
            if found is None:
                request = self.request(arguments, warps, cluster, watched=watched)
                refuse_when_frozen(self.name, request.classes())
                found = variants.build(request, arguments.place)
                self._variants[key] = found
                count_variant(self.name)
        return found


def _warps(warps: Any) -> int:
    if not hasattr(warps, "__index__") or isinstance(warps, bool) or not 1 <= warps <= MOST_WARPS:
        text = f"warps={warps!r}: a block has 1 to {MOST_WARPS} warps"
        raise error("H021", text, hint="give a whole number, such as 4, the default")
    return operator.index(warps)


def _seconds(debug: Any) -> float:
    """What `debug` means: the seconds of its limit, 0 for no debug build."""
    if isinstance(debug, bool):
        return LIMIT if debug else 0.0
    if not isinstance(debug, int | float) or not 0 <= debug <= _MOST_SECONDS:
        text = (
            f"debug={debug!r}: True, or the seconds that a wait may take, up to {_MOST_SECONDS:,}"
        )
        raise error("H021", text, hint="debug=True waits as long as is usual")
    return float(debug)


def _seed(delays: Any, debug: float) -> int | None:
    """The seed of random delays, which a debug build has."""
    if delays is None:
        return None
    if isinstance(delays, bool) or not isinstance(delays, int) or not 0 <= delays < 1 << 31:
        raise error(
            "H021",
            f"delays={delays!r}: a seed from 0 to {(1 << 31) - 1:,}",
            hint="give a whole number, such as delays=1",
        )
    if not debug:
        hint = f"debug=True, delays={delays}"
        raise error("H021", f"delays={delays}, and this is no debug build", hint=hint)
    return delays


def _known_options(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _OPTIONS:
            hint = f"options: {', '.join(_OPTIONS)}"
            raise error("H021", f"there is no compile option `{name}`", hint=hint)


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(**options: Any) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a Python function a kernel: `@wl.kernel` or `@wl.kernel(fast_math=True, …)`.

    Options: fast_math (relaxed division, square root, denormals, fusing), strict (notes of the
    assembler and spills are errors), debug (simulated launches are checked; on a GPU a launch ends
    when a wait takes longer than 2 seconds, or as many as are given, and raises the report of the
    deadlock), delays (a seed: warps of a debug build are held up at random where they
    synchronise), trace (each launch tells on stderr what its roles did and when), warps (of a
    block, 4).
    Parameters are annotated `wl.Tensor`, `wl.i32`, `wl.i64`, `wl.f32`, `wl.f64` or `wl.const`.
    Raises CompileError F001 to F006 for a function that is no kernel, LaunchError H021.
    """
    _known_options(options)
    if function is None:
        return functools.partial(_make, options)
    return _make(options, function)


def _make(options: dict[str, Any], function: Callable[..., Any]) -> Kernel:
    try:
        return Kernel(function, **options)
    except Error as report:
        raise report.with_traceback(None) from report.__cause__
