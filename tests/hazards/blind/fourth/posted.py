"""Block 0 posts a row for all others in each round, as words with their round; two sets of words
are used in turn, and used again when all have said that they have read them."""

import warploom as wl


@wl.kernel
def posted(x: wl.Tensor, mail: wl.Tensor, read: wl.Tensor, y: wl.Tensor, ROUNDS: wl.const):
    here, others = wl.program_id(0), wl.num_programs(0) - 1
    words = wl.flagged(mail, wl.f32)
    if here == 0:
        for i in wl.range(0, ROUNDS):
            row = wl.load(x[i, wl.ds(0, 128)])
            if i > 1:
                wl.wait(read[i % 2], at_least=i // 2 * others)
            words[i % 2, wl.ds(0, 128)].send(row * row, i + 1)
    else:
        total = wl.zeros((128,), wl.f32)
        for i in wl.range(0, ROUNDS):
            total = total + words[i % 2, wl.ds(0, 128)].receive(i + 1)
            wl.signal(read[i % 2], add=1)
        wl.store(y[here, wl.ds(0, 128)], total * here.cast(wl.f32))


@posted.example
def small(make):
    x, mail = make.randn((5, 128)), make.zeros((2, 128), wl.i64)
    read, y = make.zeros((2,), wl.i32), make.zeros((3, 128))
    return posted.launch(3, cooperative=True).call(x, mail, read, y, ROUNDS=5)


def expected(x, mail, read, y, **_):
    total = (x * x).sum(0)
    return {"y": total * [[0.0], [1.0], [2.0]]}
