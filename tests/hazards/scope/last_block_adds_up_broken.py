"""Wrong: the block that comes last adds up, and who came before released to itself only."""

# expect: R103 16
# expect: R102 15 18

import warploom as wl


@wl.kernel
def total(x: wl.Tensor, parts: wl.Tensor, count: wl.Tensor, y: wl.Tensor):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    with wl.roles():
        with wl.role("add", warps=4):
            part = wl.sum(wl.load(x[here, wl.ds(0, 256)]), axis=0, keepdims=True)
            wl.store(parts[wl.ds(here, 1)], part)
            came = wl.atomic_add(count[0], 1, order="acq_rel", scope="block")
            if came == blocks - 1:
                all_parts = wl.load(parts[wl.ds(0, 4)])
                wl.store(y[wl.ds(0, 1)], wl.sum(all_parts, axis=0, keepdims=True))


@total.example
def _small(make):
    x, parts, y = make.randn((4, 256)), make.zeros((4,)), make.zeros((1,))
    return total.launch(4).call(x, parts, make.zeros((1,), wl.i32), y)
