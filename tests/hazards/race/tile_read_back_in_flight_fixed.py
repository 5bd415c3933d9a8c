"""Right: a tensor is read back once the copy to it is complete."""

import warploom as wl


@wl.kernel
def there_and_back(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    done = wl.barrier()
    tile.store(wl.load(x[wl.ds(0, 64), wl.ds(0, 64)]))
    with wl.one_thread():
        wl.copy_async(tile, y[wl.ds(0, 64), wl.ds(0, 64)])
        wl.copy_commit()
        wl.copy_wait()
        done.arrive()
    done.wait(0)
    wl.fence_async(space="global")
    wl.store(z[wl.ds(0, 64), wl.ds(0, 64)], wl.load(y[wl.ds(0, 64), wl.ds(0, 64)]))
    with wl.one_thread():
        wl.copy_wait()


@there_and_back.example
def _small(make):
    x, y, z = make.randn((64, 64)), make.zeros((64, 64)), make.zeros((64, 64))
    return there_and_back.launch(1).call(x, y, z)
