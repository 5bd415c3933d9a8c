"""Which columns a launch has, where each stands in its sequence, and where the cache has it. Knows
nothing of what is computed there.
"""

import warploom as wl
from warploom.kernels.token.plan import CHUNK


@wl.struct
class Places:
    """Which columns a launch has; those of a sequence stand one position after the other. `noted`
    in shared memory holds positions, sequences and ends of a round."""

    noted: object
    positions: wl.Tensor
    sequences: wl.Tensor
    advanced: int
    TOKENS: wl.const

    def note(self):
        """One warp, as a round begins."""
        at = wl.arange(self.TOKENS)
        self.noted.scatter(at, self.now(wl.gather(self.positions, (at,))))
        self.noted.scatter(at + self.TOKENS, wl.gather(self.sequences, (at,)))

    def now(self, held):
        return wl.where(held < 0, -1, held + self.advanced)

    def sequence(self, t):
        return wl.scalar(self.noted.gather(wl.arange(1) + (t + self.TOKENS))[0])

    def position(self, t):
        """Where token t stands in its sequence; −1 for a column that is not used."""
        return wl.scalar(self.noted.gather(wl.arange(1) + t)[0])

    def note_ends(self, team):
        """All warps, once positions and sequences are noted."""
        for t in wl.range(team.r, self.TOKENS, team.WARPS):
            end = wl.where(self.begins(t), self.end(t), 0)
            self.noted.scatter(wl.arange(1) + (2 * self.TOKENS + t), wl.full((1,), end, wl.i32))

    def noted_end(self, t):
        """The column after those of the sequence that begins at t; 0 where none begins."""
        return wl.scalar(self.noted.gather(wl.arange(1) + (2 * self.TOKENS + t))[0])

    def note_chunks(self):
        """One warp, once the ends are noted: how many chunks the sequences before have."""
        before = 0
        for t in wl.range(0, self.TOKENS):
            at = wl.arange(1) + (3 * self.TOKENS + t)
            self.noted.scatter(at, wl.full((1,), before, wl.i32))
            end = self.noted_end(t)
            chunks = self.position(wl.maximum(end - 1, 0)) // CHUNK + 1
            before = before + wl.where(end > 0, chunks, 0)
        self.noted.scatter(wl.arange(1) + 4 * self.TOKENS, wl.full((1,), before, wl.i32))

    def chunks_before(self, t):
        """Chunks of all sequences that begin before column t."""
        return wl.scalar(self.noted.gather(wl.arange(1) + (3 * self.TOKENS + t))[0])

    def begins(self, t):
        """Whether column t is the first one of its sequence."""
        before = wl.maximum(t - 1, 0)
        return (self.position(t) >= 0) & (
            (t == 0) | (self.sequence(before) != self.sequence(t)) | (self.position(before) < 0)
        )

    def end(self, t):
        """The column after those of the sequence that begins at t."""
        end = t + 1
        for u in wl.unroll(1, self.TOKENS):
            here = wl.minimum(t + u, self.TOKENS - 1)
            more = (t + u < self.TOKENS) & (end == t + u)
            more = more & (self.sequence(here) == self.sequence(t)) & (self.position(here) >= 0)
            end = wl.where(more, t + u + 1, end)
        return end


@wl.struct
class Caches:
    """Keys and values of all layers, and where the rows of a sequence lie."""

    keys: wl.Tensor
    values: wl.Tensor
    pages: wl.Tensor
    places: object
    D: wl.const
    PAGE: wl.const

    def place(self, t, position):
        """Page and row in it of a position of the sequence of token t."""
        page = wl.load(self.pages[self.places.sequence(t), position // self.PAGE])
        return page, position % self.PAGE
