"""Problems whose place and rows stand in a table: a descriptor is made for each of them, and its
steps go through a ring."""

import numpy as np

import warploom as wl


@wl.kernel
def problems(x: wl.Tensor, table: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    tile = wl.shared((16, 32), wl.f32, swizzle=0)
    ring = wl.pipe(S, slots=[tile])
    made = wl.descriptors(x, tile, S + 1)
    with wl.roles():
        with wl.role("load", warps=1):
            for g in wl.range(table.shape[0]):
                of_x = made[g % (S + 1)]
                start, rows = wl.load(table[g, 0]), wl.load(table[g, 1])
                of_x.make(start, (rows, STEPS * 32))
                for k in wl.range(0, STEPS):
                    with ring.put() as slot:
                        wl.copy_async(of_x[wl.ds(0, 16), wl.ds(k * 32, 32)], slot)
        with wl.role("add", warps=2):
            for g in wl.range(table.shape[0]):
                total = wl.zeros((16, 32), wl.f32)
                for _ in wl.range(0, STEPS):
                    with ring.get() as slot:
                        total = total + slot.load()
                wl.store(y[g, wl.ds(0, 16), wl.ds(0, 32)], total)


@problems.example
def small(make):
    table = make.array([[0, 16], [4096, 9], [64, 1], [128, 13], [2048, 16]], wl.i32)
    return problems.launch(1).call(
        make.randn((8192,)), table, make.zeros((5, 16, 32)), STEPS=3, S=2
    )


def expected(x, table, y, STEPS, S):
    out = np.zeros((5, 16, 32), np.float32)
    for g, (start, rows) in enumerate(table):
        tile = x[start : start + rows * STEPS * 32].reshape(rows, STEPS, 32)
        out[g, :rows] = tile.sum(1)
    return {"y": out}
