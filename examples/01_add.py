"""Add two vectors: the smallest kernel.

A kernel is a function under `@wl.kernel`. It runs once for every block of a grid, and each block
works on tiles: small arrays of a constant size. Run it with `python examples/01_add.py`.
"""

import numpy as np

import warploom as wl


@wl.kernel
def add(x: wl.Tensor, y: wl.Tensor, out: wl.Tensor, BLOCK: wl.const):
    # Block number p is responsible for elements p·BLOCK up to (p + 1)·BLOCK.
    start = wl.program_id(0) * BLOCK
    # A window may reach over the end: what lies outside reads as zero, and is not written.
    a = wl.load(x[wl.ds(start, BLOCK)])
    b = wl.load(y[wl.ds(start, BLOCK)])
    wl.store(out[wl.ds(start, BLOCK)], a + b)


@add.example
def small(make):
    """What `warploom run`, `show` and `check` work on; `make` gives data on the chosen device."""
    x, y, out = make.randn(1000), make.randn(1000), make.empty(1000)
    return add.launch(4).call(x, y, out, BLOCK=256)


def main() -> None:
    x = np.arange(1000, dtype=np.float32)
    y = np.ones(1000, np.float32)
    out = np.empty(1000, np.float32)
    # NumPy arrays run on the simulator, arrays of `wl.to_device` on the GPU. 4 · 256 ≥ 1000.
    add[4](x, y, out, BLOCK=256)
    print("equal to NumPy:", np.array_equal(out, x + y))


if __name__ == "__main__":
    main()
