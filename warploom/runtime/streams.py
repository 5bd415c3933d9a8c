"""Captures, graphs and events of the CUDA driver. Knows no kernel and not what is recorded."""

from __future__ import annotations

from typing import Any

from warploom.runtime import driver


class Capture:
    """A stream of its own whose launches are recorded into a graph instead of run."""

    def __init__(self, device: int) -> None:
        cuda = driver.api()
        self.device = device
        with driver.Current(device):
            flag = cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
            self.stream = driver.call(cuda.cuStreamCreate(int(flag)), "making a stream")
            # Other threads may go on allocating and loading while this one records.
            mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            driver.call(cuda.cuStreamBeginCapture(self.stream, mode), "beginning the capture")

    def end(self) -> Any:
        """The executable graph; the stream is gone afterwards."""
        cuda = driver.api()
        with driver.Current(self.device):
            graph = driver.call(cuda.cuStreamEndCapture(self.stream), "ending the capture")
            executable = driver.call(cuda.cuGraphInstantiate(graph, 0), "making the graph")
            cuda.cuGraphDestroy(graph)
            cuda.cuStreamDestroy(self.stream)
        return executable

    def abandon(self) -> None:
        """End a capture whose recording failed."""
        cuda = driver.api()
        with driver.Current(self.device):
            _, graph = cuda.cuStreamEndCapture(self.stream)
            if graph is not None and int(graph):
                cuda.cuGraphDestroy(graph)
            cuda.cuStreamDestroy(self.stream)


def launch_graph(executable: Any, device: int, stream: int) -> None:
    """Launch an executable graph."""
    cuda = driver.api()
    with driver.Current(device):
        (status,) = cuda.cuGraphLaunch(executable, stream)
    if status != 0:
        driver.call((status,), "the launch of the graph")


def destroy_graph(executable: Any) -> None:
    """Give an executable graph back."""
    if driver.is_alive():
        driver.api().cuGraphExecDestroy(executable)


_NOT_READY = 600  # of the driver


class Event:
    """A point in a stream, to measure time between two."""

    def __init__(self, device: int) -> None:
        self.device = device
        with driver.Current(device):
            self.handle = driver.call(driver.api().cuEventCreate(0), "making an event")

    def record(self, stream: int) -> None:
        """Mark the point behind everything launched so far."""
        with driver.Current(self.device):
            driver.call(driver.api().cuEventRecord(self.handle, stream), "recording an event")

    @property
    def reached(self) -> bool:
        """Whether everything before the point is done."""
        with driver.Current(self.device):
            answer = driver.api().cuEventQuery(self.handle)
            if int(answer[0]) == _NOT_READY:
                return False
            driver.call(answer, "asking for an event")
            return True

    def seconds_since(self, earlier: Event) -> float:
        """Seconds from another event to this one; waits for it."""
        cuda = driver.api()
        with driver.Current(self.device):
            driver.call(cuda.cuEventSynchronize(self.handle), "waiting for an event")
            done = cuda.cuEventElapsedTime(earlier.handle, self.handle)
            return float(driver.call(done, "measuring")) / 1000.0

    def __del__(self) -> None:
        if driver.is_alive():
            driver.api().cuEventDestroy(self.handle)
