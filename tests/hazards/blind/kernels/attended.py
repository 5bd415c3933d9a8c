"""Scores of one tile of queries against tiles of keys, squared, times the values of the keys."""

import warploom as wl


@wl.kernel
def attended(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor, o: wl.Tensor, STEPS: wl.const, S: wl.const):
    sq = wl.shared((64, 64), q.dtype)
    sk, sv = wl.shared((64, 64), k.dtype, slots=S), wl.shared((64, 64), v.dtype, slots=S)
    sp = wl.shared((64, 64), q.dtype)
    q_full = wl.barrier()
    k_full, v_full = wl.barrier(S), wl.barrier(S)
    k_empty, v_empty = wl.barrier(S), wl.barrier(S)
    with wl.roles():
        with wl.role("load", warps=1):
            with wl.one_thread():
                q_full.expect(64 * 64 * 2)
                wl.copy_async(q[wl.ds(0, 64), wl.ds(0, 64)], sq, barrier=q_full)
            for i in wl.range(0, STEPS):
                s = i % S
                k_empty[s].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    k_full[s].expect(64 * 64 * 2)
                    wl.copy_async(k[wl.ds(i * 64, 64), wl.ds(0, 64)], sk[s], barrier=k_full[s])
                v_empty[s].wait(i // S % 2 ^ 1)
                with wl.one_thread():
                    v_full[s].expect(64 * 64 * 2)
                    wl.copy_async(v[wl.ds(i * 64, 64), wl.ds(0, 64)], sv[s], barrier=v_full[s])
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            q_full.wait(0)
            for i in wl.range(0, STEPS):
                s = i % S
                k_full[s].wait(i // S % 2)
                scores = wl.dot_async(sq, sk[s].T, wl.zeros((64, 64), wl.f32)).wait()
                with wl.one_thread():
                    k_empty[s].arrive()
                sp.store((scores * scores).cast(q.dtype))
                wl.fence_async()
                v_full[s].wait(i // S % 2)
                acc = wl.dot_async(sp, sv[s], acc).wait()
                with wl.one_thread():
                    v_empty[s].arrive()
            wl.store(o[wl.ds(0, 64), wl.ds(0, 64)], acc)


@attended.example
def small(make):
    q, k, v = (make.randn((rows, 64), wl.bf16) for rows in (64, 320, 320))
    o = make.zeros((64, 64), wl.f32)
    return attended.launch(1).call(q, k, v, o, STEPS=5, S=2)
