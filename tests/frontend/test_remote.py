"""What kernels may not do with tiles of peers, as users see it."""

from typing import Any

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def reaching(x: wl.Tensor, n: wl.i32, BODY: wl.const):
    tile = wl.shared((16, 64), x.dtype)
    ring = wl.shared((16, 64), x.dtype, slots=2)
    flat = wl.shared((5, 3), x.dtype, swizzle=0)
    done = wl.barrier(2)
    BODY(x, n, tile, ring, flat, done)


@wl.function
def loaded(x):
    return wl.load(x[wl.ds(0, 16), wl.ds(0, 64)])


@wl.function
def no_such_rank(x, n, tile, ring, flat, done):
    tile.on(2).load()


@wl.function
def several_slots(x, n, tile, ring, flat, done):
    ring.on(1).load()


@wl.function
def another_dtype(x, n, tile, ring, flat, done):
    tile.on(1).store(loaded(x).cast(wl.f32))


@wl.function
def arithmetic(x, n, tile, ring, flat, done):
    tile.on(1) + 1


@wl.function
def gathers(x, n, tile, ring, flat, done):
    tile.on(1).gather(loaded(x))


@wl.function
def announces(x, n, tile, ring, flat, done):
    with wl.one_thread():
        done[0].on(1).expect(2048)


@wl.function
def sends_to_itself(x, n, tile, ring, flat, done):
    wl.store_async(tile, loaded(x), done[0])


@wl.function
def names_the_peers_barrier(x, n, tile, ring, flat, done):
    wl.store_async(tile.on(1), loaded(x), done[0].on(1))


@wl.function
def names_no_barrier(x, n, tile, ring, flat, done):
    with wl.one_thread():
        wl.copy_bulk(ring[0], tile.on(1))


@wl.function
def names_several_barriers(x, n, tile, ring, flat, done):
    wl.store_async(tile.on(1), loaded(x), done)


@wl.function
def copies_another_shape(x, n, tile, ring, flat, done):
    with wl.one_thread():
        wl.copy_bulk(flat, tile.on(1), done[0])


@wl.function
def copies_by_all(x, n, tile, ring, flat, done):
    wl.copy_bulk(ring[0], tile.on(1), done[0])


@wl.function
def sends_narrow(x, n, tile, ring, flat, done):
    wl.store_async(flat.on(1), wl.load(x[wl.ds(0, 5), wl.ds(0, 3)]), done[0])


@wl.function
def copies_swizzled(x, n, tile, ring, flat, done):
    with wl.one_thread():
        wl.copy_bulk(ring[0], tile.on(1), done[0])


@wl.function
def copies_few_bytes(x, n, tile, ring, flat, done):
    other = wl.shared((5, 3), x.dtype, swizzle=0)
    with wl.one_thread():
        wl.copy_bulk(flat, other.on(1), done[0])


REFUSED: dict[str, Any] = {
    "P034": no_such_rank,
    "T015 slots": several_slots,
    "T005 dtype": another_dtype,
    "T015 arithmetic": arithmetic,
    "F025 gather": gathers,
    "F025 expect": announces,
    "T015 own": sends_to_itself,
    "T015 barrier": names_the_peers_barrier,
    "P006": names_no_barrier,
    "P005": names_several_barriers,
    "T005 shape": copies_another_shape,
    "P020": copies_by_all,
    "L023": sends_narrow,
    "L010": copies_swizzled,
    "L020": copies_few_bytes,
}
X = np.zeros((16, 64), np.float16)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, golden):
    with pytest.raises(wl.Error) as caught:
        reaching.launch(2, cluster=2).check(X, 3, REFUSED[name])
    assert caught.value.code == name.split()[0]
    golden(str(caught.value))


@wl.kernel
def of_a_pipe(x: wl.Tensor):
    ring = wl.pipe(2, slots=wl.shared((16, 64), x.dtype))
    with wl.roles():
        with wl.role("load", warps=1), ring.put() as tile:
            wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], tile)
        with wl.role("use", warps=1):
            item = ring.take()
            (tile,) = item
            tile.on(1).load()
            item.release()


def test_a_tile_of_a_pipe(golden):
    with pytest.raises(wl.Error) as caught:
        of_a_pipe.launch(2, cluster=2).check(X)
    assert caught.value.code == "P046"
    golden(str(caught.value))
