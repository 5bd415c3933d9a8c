"""What follows the sums of a matrix product: factors, bias, activation, residual, all in f32. Knows
nothing of how the sums were made."""

import warploom as wl

# What does nothing to the sums.
NOTHING = (None, None, None, None, None, None, None, False)


@wl.function
def part_of(x, batch, rows, columns):
    """A window of a matrix; of matrix `batch` where x has three axes."""
    return x[rows, columns] if len(x.shape) == 2 else x[batch, rows, columns]


@wl.function
def finished(part, epilogue, batch, row, column):
    """Sums with all that an epilogue does to them, still f32; `row`, `column` is their place."""
    bias, ACTIVATION, residual, alpha, beta, scale_a, scale_b, ROW_BIAS = epilogue
    rows, columns = wl.ds(row, part.shape[0]), wl.ds(column, part.shape[1])
    if alpha is not None:
        part = part * alpha
    if scale_a is not None:
        part = part * wl.load(scale_a[rows])[:, None]
    if scale_b is not None:
        part = part * wl.load(scale_b[columns])[None, :]
    if bias is not None:
        along = rows if ROW_BIAS else columns
        added = wl.load(bias[along] if len(bias.shape) == 1 else bias[batch, along]).cast(wl.f32)
        part = part + (added[:, None] if ROW_BIAS else added[None, :])
    if ACTIVATION is not None:
        part = ACTIVATION(part)
    if residual is not None:
        added = wl.load(part_of(residual, batch, rows, columns)).cast(wl.f32)
        part = part + (added if beta is None else added * beta)
    return part
