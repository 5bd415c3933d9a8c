"""Philox4x32-10 on the host: random words from (seed, offset), nothing kept between calls."""

_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF


def philox(seed: int, offset: int) -> tuple[int, int, int, int]:
    """Four 32-bit words: the key is the 64-bit seed, the counter the offset."""
    key0, key1 = seed & _MASK, (seed >> 32) & _MASK
    c0, c1, c2, c3 = (offset & _MASK, (offset >> 32) & _MASK, 0, 0)
    for _ in range(10):
        p0, p1 = c0 * _MULTIPLY[0], c2 * _MULTIPLY[1]
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ key0, p1 & _MASK, (p0 >> 32) ^ c3 ^ key1, p0 & _MASK
        key0, key1 = (key0 + _WEYL[0]) & _MASK, (key1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


def uniform(seed: int, offset: int) -> float:
    """A number in [0, 1) with 24 random bits."""
    return (philox(seed, offset)[0] >> 8) * 2.0**-24
