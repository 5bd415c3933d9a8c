"""The multiplying warps of a block, and how they meet: in the block, and with all other blocks.

Every warp is a replica of one role, so each has tiles of its own; what they share lies in shared
memory, between two meetings. Knows nothing of models.
"""

import warploom as wl


@wl.struct
class Team:
    """One warp's view: warp `r` of `WARPS` in block `b` of `BLOCKS`.

    `state` holds a counter that each block raises by one at an exchange, and from where this launch
    counts. `sums` has two halves of 32 × 4 numbers a warp, used in turn; `stats` numbers of spans
    or warps, `roots` one of each token: what the sums of a normalised matrix are multiplied with,
    and as many means.
    """

    r: int
    b: int
    meeting: object
    state: wl.Tensor
    sums: object
    stats: object
    roots: object
    WARPS: wl.const
    BLOCKS: wl.const
    TOKENS: wl.const

    def meet(self):
        """All warps of the block come here; what they wrote in shared memory is seen after."""
        self.meeting.sync()

    def exchange(self, count):
        """All blocks come here, for the time that makes `count` arrivals; what they wrote to global
        memory is seen after. One thread of a block publishes, one polls."""
        self.meeting.sync()
        if self.r == 0:
            wl.signal(self.state[0], add=1)
            wl.wait(self.state[0], at_least=count)
        self.meeting.sync()
        return count + self.BLOCKS

    def first_count(self):
        """The count of the first exchange of this launch."""
        return wl.load(self.state[1]) + self.BLOCKS

    def finish(self, count):
        """After the last exchange: let the next launch count from here."""
        if (self.b == 0) & (self.r == 0):
            wl.store(self.state[wl.ds(1, 1)], wl.full((1,), count - self.BLOCKS, wl.i32))

    def note(self, place, number):
        """Keep one number, of shape () or (1,), at a place of `stats`."""
        self.stats.scatter(wl.arange(1) + place, wl.zeros((1,), wl.f32) + number)

    def noted(self, place):
        """A number for each warp from a place of `stats` on."""
        return self.stats.gather(wl.arange(self.WARPS) + place)
