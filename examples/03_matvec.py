"""Matrix times vector: a loop over tiles, and sums in f32 of weights in bf16.

This is what a language model spends its time on when it writes one word after the other. Run it
with `python examples/03_matvec.py`.
"""

import ml_dtypes
import numpy as np

import warploom as wl


@wl.kernel
def matvec(w: wl.Tensor, x: wl.Tensor, y: wl.Tensor, ROWS: wl.const, STEP: wl.const):
    first = wl.program_id(0) * ROWS
    # One partial sum for every place of the tile: the loop adds, the one reduction comes after it.
    partial = wl.zeros((ROWS, STEP), wl.f32)
    for k in wl.range(0, x.shape[0], STEP):
        # Nothing is converted behind your back: bf16 becomes f32 where it is written.
        weights = wl.load(w[wl.ds(first, ROWS), wl.ds(k, STEP)]).cast(wl.f32)
        values = wl.load(x[wl.ds(k, STEP)])
        partial = partial + weights * values[None, :]
    wl.store(y[wl.ds(first, ROWS)], wl.sum(partial, axis=1))


@matvec.example
def small(make):
    w, x, y = make.randn((50, 200), wl.bf16), make.randn(200), make.empty(50)
    return matvec.launch(4).call(w, x, y, ROWS=16, STEP=64)


def main() -> None:
    random = np.random.default_rng(0)
    w = random.standard_normal((1536, 576), np.float32).astype(ml_dtypes.bfloat16)
    x = random.standard_normal(576, np.float32)
    y = np.empty(1536, np.float32)
    matvec[96](w, x, y, ROWS=16, STEP=192)
    exact = w.astype(np.float64) @ x.astype(np.float64)
    print(f"largest difference to NumPy: {np.abs(y - exact).max():.1e}")


if __name__ == "__main__":
    main()
