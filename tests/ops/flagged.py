"""Flagged data: words of 8 and 16 bytes, each dtype, from every block to the next one."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread
from warploom.base.dtypes import BY_NAME

BLOCKS, SIZE = 5, 100


@wl.kernel
def one(x: wl.Tensor, mail: wl.Tensor, y: wl.Tensor, KINDS: wl.const, SCOPE: wl.const):
    """y[b] is x[b − 1], in words of one value; one word goes by itself."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    before = (here + blocks - 1) % blocks
    box = wl.flagged(mail, KINDS, scope=SCOPE)
    box[here, wl.ds(0, SIZE)].send(wl.load(x[0, here, wl.ds(0, SIZE)]), here - 9)
    box[here, SIZE].send(wl.load(x[0, here, 0]), 7)
    wl.store(y[0, here, wl.ds(1, SIZE)], box[before, wl.ds(0, SIZE)].receive(before - 9))
    wl.store(y[0, here, 0], box[before, SIZE].receive(7))


@wl.kernel
def two(x: wl.Tensor, mail: wl.Tensor, y: wl.Tensor, KINDS: wl.const, SCOPE: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    before = (here + blocks - 1) % blocks
    box = wl.flagged(mail, KINDS, scope=SCOPE)
    first, second = (wl.load(x[0, here, wl.ds(0, SIZE)]), wl.load(x[1, here, wl.ds(0, SIZE)]))
    box[here, wl.ds(0, SIZE)].send((first, second), here - 9)
    box[here, SIZE].send((wl.load(x[0, here, 0]), wl.load(x[1, here, 0])), 7)
    first, second = box[before, wl.ds(0, SIZE)].receive(before - 9)
    wl.store(y[0, here, wl.ds(1, SIZE)], first)
    wl.store(y[1, here, wl.ds(1, SIZE)], second)
    first, second = box[before, SIZE].receive(7)
    wl.store(y[0, here, 0], first)
    wl.store(y[1, here, 0], second)


@wl.kernel
def three(x: wl.Tensor, mail: wl.Tensor, y: wl.Tensor, KINDS: wl.const, SCOPE: wl.const):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    before = (here + blocks - 1) % blocks
    box = wl.flagged(mail, KINDS, scope=SCOPE)
    first, second = (wl.load(x[0, here, wl.ds(0, SIZE)]), wl.load(x[1, here, wl.ds(0, SIZE)]))
    third = wl.load(x[2, here, wl.ds(0, SIZE)])
    box[here, wl.ds(0, SIZE)].send((first, second, third), here - 9)
    once = (wl.load(x[0, here, 0]), wl.load(x[1, here, 0]), wl.load(x[2, here, 0]))
    box[here, SIZE].send(once, 7)
    first, second, third = box[before, wl.ds(0, SIZE)].receive(before - 9)
    wl.store(y[0, here, wl.ds(1, SIZE)], first)
    wl.store(y[1, here, wl.ds(1, SIZE)], second)
    wl.store(y[2, here, wl.ds(1, SIZE)], third)
    first, second, third = box[before, SIZE].receive(7)
    wl.store(y[0, here, 0], first)
    wl.store(y[1, here, 0], second)
    wl.store(y[2, here, 0], third)


KERNELS = {1: one, 2: two, 3: three}


def by_word(op: str, dtype: str, count: int, scope: str, found: str) -> Case:
    def make(device):
        x = np.stack([np.roll(spread(dtype, (BLOCKS, SIZE)), k) for k in range(count)])
        shape = (BLOCKS, SIZE + 1) if count == 1 else (BLOCKS, SIZE + 1, 2)
        y = device.empty((count, BLOCKS, SIZE + 1), x.dtype)
        launch = KERNELS[count].launch(BLOCKS, cooperative=True)
        given = device.put(x), device.put(np.zeros(shape, np.int64)), y
        kinds = (BY_NAME[dtype],) * count if count > 1 else BY_NAME[dtype]
        wanted = np.roll(np.concatenate([x[..., :1], x], axis=2), 1, axis=1)
        return Trial(launch.call(*given, KINDS=kinds, SCOPE=scope), [(y, wanted)])

    return Case(op, found, make, f"{dtype}-{count}-{scope}")


OPS = ("flagged.send", "flagged.receive", "flagged.put", "flagged.take")
FORMS = ((1, "gpu"), (2, "system"), (3, "gpu"))
CASES = [by_word(op, d, n, s, d) for op in OPS for d in ("f32", "i32") for n, s in FORMS]
CASES += [by_word("flagged.look", d, n, s, "") for d in ("f32", "i32") for n, s in FORMS]
