"""How often each number stands in a row: a row a cluster, each of whose blocks counts its part and
ends with the sums of its share of the bins. Knows no shape of a launch."""

import warploom as wl


@wl.kernel
def histogram(x: wl.Tensor, counts: wl.Tensor, BN: wl.const, STEP: wl.const, BINS: wl.const):
    """counts[t, b] = how many of x[t] are b. A block has BN numbers, and compares STEP of them at a
    time with all BINS; the shares of bins are handed round by a reduce-scatter."""
    wl.launch_dependents()
    wl.wait_for_previous()
    SIZE = wl.cluster_size()
    t, rank, SHARE = wl.program_id(0) // SIZE, wl.cluster_rank(), BINS // SIZE
    bins = wl.arange(BINS)[:, None]
    found = wl.zeros((BINS,), wl.i32)
    for i in wl.range(BN // STEP):
        numbers = wl.load(x[t, wl.ds(rank * BN + i * STEP, STEP)], other=-1)
        found = found + wl.sum((numbers[None, :] == bins).cast(wl.i32), axis=1)
    total = wl.reduce_scatter(found, "sum", over=wl.cluster)
    wl.store(counts[t, wl.ds(rank * SHARE, SHARE)], total)


@histogram.example
def _ragged(make):
    x, counts = make.integers(-1, 41, (3, 150), wl.i32), make.empty((3, 40), wl.i32)
    return histogram.launch(12, cluster=(4,)).call(x, counts, BN=48, STEP=16, BINS=64)
