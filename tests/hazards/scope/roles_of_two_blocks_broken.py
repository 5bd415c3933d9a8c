"""Wrong: roles of all blocks add up at the scope of a block."""

# expect: R103 14

import warploom as wl


@wl.kernel
def counted(x: wl.Tensor, total: wl.Tensor):
    with wl.roles():
        with wl.role("low", warps=4):
            wl.store(x[wl.program_id(0), wl.ds(0, 64)], wl.zeros((64,), wl.f32))
        with wl.role("high", warps=4):
            wl.atomic_add(total[0], 1, scope="block")


@counted.example
def _small(make):
    return counted.launch(3).call(make.zeros((3, 64)), make.zeros((1,), wl.i32))
