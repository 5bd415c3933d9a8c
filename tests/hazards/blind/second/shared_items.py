"""Blocks of a cluster fill each other's items, and two replicas multiply their halves of each."""

import warploom as wl


@wl.kernel
def shared_items(x: wl.Tensor, w: wl.Tensor, y: wl.Tensor, STEPS: wl.const, S: wl.const):
    size, rank = wl.cluster_size(), wl.cluster_rank()
    part = 128 // size
    slots = [wl.shared((128, 64), x.dtype), wl.shared((64, 64), w.dtype)]
    ring = wl.pipe(S, slots=slots, cluster=True)
    out = wl.pipe(1, slots=wl.shared((64, 64), wl.f32), to=wl.copy_engine)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                with ring.put() as (tile, weight):
                    rows = x[wl.ds(rank * part, part), wl.ds(k * 64, 64)]
                    place = tile[wl.ds(rank * part, part), :]
                    wl.copy_async(rows, place, multicast=wl.cluster_mask(0))
                    wl.copy_async(w[wl.ds(rank * 64, 64), wl.ds(k * 64, 64)], weight)
        with wl.role("math", warps=4, replicas=2) as r:
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, STEPS):
                item = ring.take()
                tile, weight = item
                acc = wl.dot_async(tile[wl.ds(r * 64, 64), :], weight.T, acc)
                item.release(after=acc, behind=1)
            with out.put() as slot:
                slot.store(acc.wait())
                wl.copy_async(slot, y[wl.ds(r * 64, 64), wl.ds(rank * 64, 64)])


@shared_items.example
def small(make):
    x, w = make.randn((128, 320), wl.f16), make.randn((128, 320), wl.f16)
    return shared_items.launch(2, cluster=2).call(x, w, make.zeros((128, 128)), STEPS=5, S=2)
