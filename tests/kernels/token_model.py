"""Small models for the token kernel: random weights, packed and put on a device, and caches that
hold what the reference computed, so that any length is one launch away."""

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from warploom.kernels import token
from warploom.kernels.token.packing.reference import packed
from warploom.kernels.token.reference import Layer, Model, forward

BF16 = ml_dtypes.bfloat16
SMALL = token.Shape(2, 128, 4, 2, 32, 192, 300, 32)


def model(
    shape: token.Shape = SMALL,
    *,
    norms: bool = False,
    bias: bool = False,
    biases: bool = False,
    dtype: Any = BF16,
) -> Model:
    """Random weights; sharp attention, so that a wrong key shows."""
    rng = np.random.default_rng(7)

    def matrix(rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        return (factor * rng.standard_normal((rows, columns)) / columns**0.5).astype(dtype)

    def near_one(*sizes: int) -> np.ndarray:
        return (1 + 0.1 * rng.standard_normal(sizes)).astype(np.float32)

    def near_zero(*sizes: int) -> np.ndarray | None:
        return (0.3 * rng.standard_normal(sizes)).astype(np.float32) if biases else None

    def layer() -> Layer:
        qkv = matrix(shape.query + 2 * shape.key, shape.hidden)
        qkv[: shape.query + shape.key] *= 2
        made = Layer(
            qkv=qkv,
            out=matrix(shape.hidden, shape.query),
            gate_up=matrix((1 + shape.gated) * shape.feed_forward, shape.hidden),
            down=matrix(shape.hidden, shape.feed_forward),
            norms=near_one(2, shape.hidden),
            norm_biases=near_zero(2, shape.hidden),
            out_bias=near_zero(shape.hidden),
            down_bias=near_zero(shape.hidden),
        )
        made.up_bias = near_zero(len(made.gate_up))
        if bias or biases:
            made.qkv_bias = rng.standard_normal(len(qkv)).astype(np.float32)
        if norms:
            made.q_norm, made.k_norm = near_one(shape.head_dim), near_one(shape.head_dim)
        return made

    steps = np.arange(0, shape.rotary_dim, 2) / shape.rotary_dim
    return Model(
        shape=shape,
        embedding=rng.standard_normal((shape.vocabulary, shape.hidden)).astype(dtype),
        layers=[layer() for _ in range(shape.layers)],
        norm=near_one(shape.hidden),
        head=matrix(shape.vocabulary, shape.hidden),
        frequencies=(1 / 10000**steps).astype(np.float32),
        norm_bias=near_zero(shape.hidden),
    )


@dataclass
class Machine:
    """A model on a device, and a cache of `context` positions for each of some sequences."""

    device: Any
    model: Model
    plan: token.Plan
    weights: token.Weights
    cache: token.Cache
    works: dict[int, token.Workspace]

    def columns(self, ids: list[int], positions: list[int], sequences: list[int]) -> Any:
        """Columns on the device."""
        arrays = (np.array(n, np.int32) for n in (ids, positions, sequences))
        return token.Columns(*(self.device.put(a) for a in arrays))

    def call(self, columns: token.Columns, rounds: int = 1, **options: Any) -> Any:
        """A launch that has not been made."""
        work = self.works.get(columns.count)
        if work is None or work.chosen.shape[0] != rounds:
            zeros = lambda shape, dtype: self.device.put(np.zeros(shape, dtype))  # noqa: E731
            work = token.Workspace.make(self.plan, columns.count, self.cache.context, zeros, rounds)
            self.works[columns.count] = work
        scale = self.model.shape.head_dim**-0.5
        return token.call(
            self.plan, self.weights, self.cache, columns, work,
            eps=self.model.eps, scale=scale, rounds=rounds, **options,
        )  # fmt: skip

    def run(self, ids: list[int], positions: list[int], sequences: list[int], **options: Any):
        """One launch: logits, and the columns that it left."""
        columns = self.columns(ids, positions, sequences)
        self.call(columns, **options).run()
        return self.logits(columns.count), columns

    def logits(self, columns: int) -> np.ndarray:
        """Of the last launch with so many columns: [rounds · columns, vocabulary]."""
        return np.array(self.device.get(self.works[columns].logits))

    def chosen(self, columns: int) -> np.ndarray:
        """Tokens of the last launch with so many columns: [rounds, columns]."""
        return np.array(self.device.get(self.works[columns].chosen))

    def begin_anew(self) -> None:
        """After a launch that was stopped."""
        for columns, work in self.works.items():
            state = self.device.put(np.zeros(work.state.shape, np.int32))
            self.works[columns] = replace(work, state=state)

    def stream(self, columns: int) -> np.ndarray:
        """What the last layer left, of a launch without a head."""
        work = self.works[columns]
        parts = self.device.get(work.parts[3]).astype(np.float64)
        parts = parts.reshape(*parts.shape[:2], -1)
        parts = owned(self.plan.down, parts)[:, : self.model.shape.hidden]
        stream = self.device.get(work.stream)[1]
        return stream.reshape(len(stream), -1) + parts

    def holding(self, histories: list[list[int]]) -> "Machine":
        """Caches that hold what the reference has for a history of each sequence."""
        keys, values = (np.array(self.device.get(a)) for a in (self.cache.keys, self.cache.values))
        pages = self.device.get(self.cache.pages)
        for sequence, ids in enumerate(histories):
            if not ids:
                continue
            found = forward(self.model, ids, short=True)
            for layer in range(self.model.shape.layers):
                for p in range(len(ids)):
                    page, row = pages[sequence, p // self.cache.page], p % self.cache.page
                    keys[layer, page, row] = found.keys[layer][p]
                    values[layer, page, row] = found.values[layer][p]
        cache = token.Cache(self.device.put(keys), self.device.put(values), self.cache.pages)
        return Machine(self.device, self.model, self.plan, self.weights, cache, {})


def owned(matrix: Any, parts: np.ndarray) -> np.ndarray:
    """Results [tokens, rows] out of parts, of which a band has as many as blocks that share it."""
    total = np.zeros(parts.shape[1:])
    for band in range(matrix.bands):
        first, last = band * matrix.steps, (band + 1) * matrix.steps - 1
        rows = slice(band * matrix.band_rows, (band + 1) * matrix.band_rows)
        count = matrix.owner(last) - matrix.owner(first) + 1
        total[:, rows] = parts[:count, :, rows].sum(0)
    return total


def machine(
    device: Any,
    made: Model,
    *,
    blocks: int = 5,
    warps: int = 4,
    context: int = 64,
    page: int = 16,
    sequences: int = 1,
) -> Machine:
    """A model on a device. Caches hold NaN, pages lie in no order."""
    plan, shape = token.make(made.shape, blocks, warps), made.shape
    names = sorted(("qkv", "out", "gate_up", "down"), key=lambda name: getattr(plan, name).base)
    steps = [
        packed(getattr(layer, name), getattr(plan, name), warps)
        for layer in made.layers
        for name in names
    ]
    steps.append(packed(made.head, plan.head, warps))

    def stacked(name: str) -> Any:
        arrays = [getattr(layer, name) for layer in made.layers]
        return None if arrays[0] is None else device.put(np.stack(arrays))

    norms = np.concatenate([layer.norms for layer in made.layers] + [made.norm[None]])
    weights = token.Weights(
        packed=device.put(np.concatenate(steps)),
        embedding=device.put(made.embedding),
        norms=device.put(norms),
        frequencies=device.put(made.frequencies),
        q_norm=stacked("q_norm"),
        k_norm=stacked("k_norm"),
        qkv_bias=stacked("qkv_bias"),
        out_bias=stacked("out_bias"),
        up_bias=stacked("up_bias"),
        down_bias=stacked("down_bias"),
        norm_biases=None if made.norm_bias is None else device.put(norm_biases(made)),
    )
    count = context // page
    pages = np.random.default_rng(1).permutation(sequences * count).astype(np.int32)
    empty = (shape.layers, sequences * count, page, shape.kv_heads, shape.head_dim)
    cache = token.Cache(
        keys=device.put(np.full(empty, np.nan, made.embedding.dtype)),
        values=device.put(np.full(empty, np.nan, made.embedding.dtype)),
        pages=device.put(pages.reshape(sequences, count)),
    )
    return Machine(device, made, plan, weights, cache, {})


def norm_biases(made: Model) -> np.ndarray:
    """The biases of all norms, as the kernel takes them."""
    rows = [layer.norm_biases for layer in made.layers] + [made.norm_bias]
    return np.concatenate([np.atleast_2d(row) for row in rows if row is not None])


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Distance over length, of all elements."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
