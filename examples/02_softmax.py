"""Softmax of each row of a matrix: reductions, broadcasting, and rows of any length.

Run it with `python examples/02_softmax.py`.
"""

import numpy as np

import warploom as wl


@wl.kernel
def softmax(x: wl.Tensor, out: wl.Tensor, ROWS: wl.const, COLUMNS: wl.const):
    first = wl.program_id(0) * ROWS
    # COLUMNS is the length of a row and need be no power of two. Rows past the last one read as
    # −∞ here; whatever becomes of them is dropped by the store.
    window = x[wl.ds(first, ROWS), wl.ds(0, COLUMNS)]
    scores = wl.load(window, other=float("-inf"))
    # A reduction drops its axis; [:, None] puts it back, so that it meets the rows again.
    weights = wl.exp(scores - wl.max(scores, axis=1)[:, None])
    shares = weights / wl.sum(weights, axis=1)[:, None]
    wl.store(out[wl.ds(first, ROWS), wl.ds(0, COLUMNS)], shares)


@softmax.example
def small(make):
    x, out = make.randn((17, 80)), make.empty((17, 80))
    return softmax.launch(5).call(x, out, ROWS=4, COLUMNS=80)


def main() -> None:
    x = np.random.default_rng(0).standard_normal((1000, 576), np.float32)
    out = np.empty_like(x)
    softmax[250](x, out, ROWS=4, COLUMNS=576)
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(1, keepdims=True)
    print(f"largest difference to NumPy: {np.abs(out - exact).max():.1e}")


if __name__ == "__main__":
    main()
