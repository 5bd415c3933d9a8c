"""Graphs: the launches of a function, recorded once and replayed as one.

On a GPU a CUDA graph; on the simulator the list of launches, run again one after another. Either
way the recorded launches keep their arrays alive and see what these hold at the replay.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from warploom.base.errors import error
from warploom.runtime import driver, streams
from warploom.runtime.arrays import SIM


class Replay(Protocol):
    """A launch with fixed arguments."""

    place: str
    source: str

    def run(self, stream: int | None) -> None:
        """Launch on a stream, or on the one that the launch would take by itself."""
        ...


class Recording:
    """Takes the launches of one function instead of running them."""

    def __init__(self) -> None:
        self.launches: list[Replay] = []

    def add(self, launch: Replay) -> None:
        """Record a launch; its code is compiled and loaded already."""
        self.launches.append(launch)
        first = self.launches[0].place
        if launch.place != first:
            text = f"a graph holds launches of one device, not of {first} and {launch.place}"
            raise error("H014", text)


_recording: ContextVar[Recording | None] = ContextVar("warploom_recording", default=None)


def recording() -> Recording | None:
    """The recording that launches of this thread go to, if there is one."""
    return _recording.get()


class Graph:
    """Recorded launches. `launches` is their number, `place` the device: "sim" or "gpu:N"."""

    def __init__(self, launches: list[Replay], stream: int | None) -> None:
        self._held = launches
        self._stream = stream
        self.place = launches[0].place
        self._executable: Any = None
        if self.place != SIM:
            self._executable = _capture(launches, int(self.place[4:]))
            weakref.finalize(self, streams.destroy_graph, self._executable).atexit = False

    @property
    def launches(self) -> int:
        """Number of recorded launches."""
        return len(self._held)

    def replay(self, stream: Any = None) -> None:
        """Run the launches, on a GPU as one launch.

        `stream`: as in `kernel.launch`; by default the one given to `wl.graph`, else torch's
        current stream where torch's tensors were recorded, else the default stream.
        """
        chosen = self._stream if stream is None else stream_handle(stream)
        if self._executable is None:
            for launch in self._held:
                launch.run(chosen)
            return
        device = int(self.place[4:])
        if chosen is None:
            source = "torch" if any(one.source == "torch" for one in self._held) else ""
            chosen = driver.current_stream(device, source)
        streams.launch_graph(self._executable, device, chosen)


def _capture(launches: list[Replay], device: int) -> Any:
    capture = streams.Capture(device)
    try:
        for launch in launches:
            launch.run(int(capture.stream))
    except BaseException:
        capture.abandon()
        raise
    return capture.end()


def graph(function: Callable[[], object], *, stream: Any = None) -> Graph:
    """Run `function()` once, then once more to record the kernel launches that it makes.

    The second time no launch runs until `replay()`, so the function must make the same launches
    again and read none of their results. Whatever else it does (torch operations, copies) happens
    both times and is not recorded: to capture such work too, use torch.cuda.graph, which takes
    Warploom's launches after their first call. The arrays live as long as the graph. Raises
    LaunchError where nothing is launched or several devices are used, and whatever the function
    raises.
    """
    if _recording.get() is not None:
        raise error(
            "H021",
            "wl.graph was called while another graph is being recorded",
            hint="record the two one after the other",
        )
    function()
    recorded = Recording()
    token = _recording.set(recorded)
    try:
        function()
    finally:
        _recording.reset(token)
    if not recorded.launches:
        raise error(
            "H021",
            "the function given to wl.graph launched no kernel",
            hint="launch at least one kernel on a GPU in it",
        )
    return Graph(recorded.launches, None if stream is None else stream_handle(stream))


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: an integer, or an object of torch, CuPy or cuda.core."""
    if isinstance(stream, int):
        return stream
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair: Any = protocol() if callable(protocol) else protocol
        return int(pair[1])
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(handle)
    text = f"stream={stream!r} is no stream"
    hint = "give a torch or CuPy stream, an object with __cuda_stream__, or the driver's handle"
    raise error("H021", text[:200], hint=hint)
