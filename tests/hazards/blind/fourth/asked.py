"""One role sends questions over a channel, two at a time, and takes two answers over another."""

import warploom as wl


@wl.kernel
def asked(x: wl.Tensor, y: wl.Tensor, PAIRS: wl.const, AHEAD: wl.const = 2):
    ask, answer = wl.channel((64,), x.dtype), wl.channel((64,), x.dtype)
    with wl.roles():
        with wl.role("ask", warps=2):
            for i in wl.range(0, PAIRS):
                for j in wl.range(0, AHEAD):
                    ask.send(wl.load(x[i * AHEAD + j, wl.ds(0, 64)]))
                for j in wl.range(0, AHEAD):
                    got = answer.receive()
                    wl.store(y[i * AHEAD + j, wl.ds(0, 64)], got)
        with wl.role("answer", warps=2):
            for _ in wl.range(0, PAIRS * AHEAD):
                question = ask.receive()
                answer.send(question * question)


@asked.example
def small(make):
    return asked.launch(1).call(make.randn((12, 64)), make.zeros((12, 64)), PAIRS=6)


def expected(x, y, **_):
    return {"y": x * x}
