"""Machine operations that no tile operation lowers to: kernels written as IR text, run on either
device without the front end."""

from typing import Any

import numpy as np

from warploom.base.target import SM_90A
from warploom.codegen.emitter import emit
from warploom.ir.parser import parse_kernel
from warploom.ir.verifier import verify_kernel
from warploom.runtime import arrays, driver, modules, nvrtc
from warploom.runtime.findings import Finding, Findings
from warploom.runtime.packing import Pack, layout_of
from warploom.sim.program import prepare


class RawCall:
    """A launch of a kernel given as machine IR. Arguments are all arrays of one device."""

    def __init__(self, text: str, grid: int, *args: Any) -> None:
        self.kernel = parse_kernel(text)
        verify_kernel(self.kernel)
        self._text, self.grid, self.args = text, grid, args

    def text(self, level: str) -> str:
        """The text that was given."""
        assert level in ("machine", "roles")
        return self._text

    def check(self) -> Findings:
        """Run in the simulator's checked mode."""
        result = prepare(self.kernel).run((self.grid,), self.args, checked=True)
        return Findings(self.kernel.name, found=[Finding(r) for r in result.findings])

    def run(self) -> None:
        """Launch; on a GPU by the driver."""
        if all(isinstance(a, np.ndarray) for a in self.args):
            prepare(self.kernel).run((self.grid,), self.args)
            return
        source = emit(self.kernel, SM_90A)
        cubin = nvrtc.compile_cubin(source, SM_90A).cubin
        views = [arrays.read(a, "argument") for a in self.args]
        layout = layout_of(self.kernel)
        pack = Pack(layout)  # the words that the driver reads are its memory
        words = pack.fill(layout.values(views, [v.strides for v in views]))
        loaded = modules.load(cubin, source.entry, source.shared_bytes, 0)
        stream = driver.current_stream(0, views[0].source)
        modules.launch(loaded, 0, stream, (self.grid, 1, 1), source.threads, words)
        driver.synchronize(0)
