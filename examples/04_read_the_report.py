"""Read the report: a kernel with a planted mistake, and what Warploom says about it.

Row sums in two steps: each block sums a piece of its row into `pieces`, then a second kernel adds
the pieces up. The mistake is in the launch: the grid of the first step is one block short, so the
last piece of every row is never written, and the second step reads whatever the memory holds. On a
GPU the answer looks fine whenever that memory happens to be zero. Run it with
`python examples/04_read_the_report.py`.
"""

import warploom as wl

STEP = 64


@wl.kernel
def sum_pieces(x: wl.Tensor, pieces: wl.Tensor, STEP: wl.const):
    row, piece = wl.program_id(0), wl.program_id(1)
    values = wl.load(x[row, wl.ds(piece * STEP, STEP)])
    wl.store(pieces[row, wl.ds(piece, 1)], wl.sum(values, axis=0, keepdims=True))


@wl.kernel
def add_pieces(pieces: wl.Tensor, out: wl.Tensor, COUNT: wl.const):
    row = wl.program_id(0)
    values = wl.load(pieces[row, wl.ds(0, COUNT)])
    wl.store(out[wl.ds(row, 1)], wl.sum(values, axis=0, keepdims=True))


def row_sums(make, blocks):
    """Both steps over 3 rows of 200 numbers, which are 4 pieces; `blocks` is what is launched."""
    x, pieces, out = make.randn((3, 200)), make.empty((3, 4)), make.empty(3)
    sum_pieces.launch((3, blocks)).call(x, pieces, STEP=STEP).run()
    return add_pieces.launch(3).call(pieces, out, COUNT=4)


@add_pieces.example
def right(make):
    return row_sums(make, blocks=4)


@add_pieces.example("mistake")
def mistake(make):
    return row_sums(make, blocks=3)


def main() -> None:
    # `check` runs the call on the simulator with a shadow for every byte: was it ever written?
    print("--- 4 blocks a row:")
    print(right(wl.Make()).check().text())
    print("--- 3 blocks a row:")
    print(mistake(wl.Make()).check().text())


if __name__ == "__main__":
    main()
