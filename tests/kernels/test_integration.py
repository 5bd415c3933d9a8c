"""Library calls together: recorded into a graph, fed by torch, one block of a model end to end."""

import numpy as np
import pytest

import warploom as wl
from warploom.kernels import (
    activation,
    attention,
    elementwise,
    embedding,
    kv,
    linear,
    norm,
    position,
    rope,
    sampling,
)
from warploom.kernels.activation import reference as activation_reference
from warploom.kernels.attention import reference as attention_reference
from warploom.kernels.linear import reference as linear_reference
from warploom.kernels.norm import reference as norm_reference
from warploom.kernels.rope import reference as rope_reference

HIDDEN, HEADS, KEY_HEADS, DIM, WIDE, WORDS, CONTEXT, EPS = 96, 6, 2, 16, 160, 300, 40, 1e-5


class Block:
    """One transformer block with random weights, by library calls and by the references."""

    def __init__(self, randn) -> None:
        self.table = randn((WORDS, HIDDEN), "bf16")
        self.weights = {
            "norm": randn(HIDDEN),
            "qkv": randn(((HEADS + 2 * KEY_HEADS) * DIM, HIDDEN), "bf16"),
            "out": randn((HIDDEN, HEADS * DIM), "bf16"),
            "gate": randn((WIDE, HIDDEN), "bf16"),
            "up": randn((WIDE, HIDDEN), "bf16"),
            "down": randn((HIDDEN, WIDE), "bf16"),
        }
        self.inv_freq = (1e4 ** -(np.arange(0, DIM, 2) / DIM)).astype(np.float32)

    def place(self, device) -> None:
        """Put weights, cache and buffers on a device; the sequence starts with word 7."""
        f32 = np.float32
        self.w = {name: device.put(w) for name, w in self.weights.items()}
        self.words, self.frequencies = device.put(self.table), device.put(self.inv_freq)
        self.token = device.put(np.array([7], np.int32))
        self.at = device.put(np.array([0], np.int32))
        self.keys = device.put(np.full((CONTEXT, KEY_HEADS, DIM), np.nan, f32))
        self.values = device.put(np.full((CONTEXT, KEY_HEADS, DIM), np.nan, f32))
        sizes = {"x": HIDDEN, "n": HIDDEN, "qkv": len(self.weights["qkv"]), "mixed": HEADS * DIM}
        sizes |= {"attended": HIDDEN, "gate": WIDE, "up": WIDE, "down": HIDDEN, "logits": WORDS}
        self.b = {name: device.empty((1, size), f32) for name, size in sizes.items()}
        self.partial = attention.workspace(1, HEADS, DIM, CONTEXT, like=self.token)
        self.scratch = sampling.workspace(1, WORDS, like=self.token)

    def step(self) -> None:
        """One token: state, cache and position change on the device only."""
        b, w = self.b, self.w
        embedding.embed(self.token, self.words, b["x"])
        norm.rms_norm(b["x"], w["norm"], b["n"], EPS)
        linear.linear(b["n"], w["qkv"], b["qkv"])
        heads = b["qkv"].reshape(1, -1, DIM)
        turning = heads[:, : HEADS + KEY_HEADS]
        rope.rope(turning, self.at, self.frequencies, turning)
        kv.append(
            heads[:, HEADS : HEADS + KEY_HEADS],
            heads[:, HEADS + KEY_HEADS :],
            self.keys,
            self.values,
            self.at,
        )
        mixed = b["mixed"].reshape(1, HEADS, DIM)
        query = heads[:, :HEADS]
        attention.decode(
            query, self.keys, self.values, self.at, mixed, DIM**-0.5, partial=self.partial
        )
        linear.linear(b["mixed"], w["out"], b["attended"], residual=b["x"])
        norm.rms_norm(b["attended"], w["norm"], b["n"], EPS)
        linear.linear(b["n"], w["gate"], b["gate"])
        linear.linear(b["n"], w["up"], b["up"])
        activation.silu_mul(b["gate"], b["up"], b["gate"])
        linear.linear(b["gate"], w["down"], b["down"])
        elementwise.add(b["attended"], b["down"], b["x"])
        linear.linear(b["x"], self.words, b["logits"])
        sampling.argmax(b["logits"], self.token, self.scratch)
        position.advance(self.at)

    def expected(self, steps: int) -> list[int]:
        """The words that the references choose."""
        w, token, chosen = self.weights, 7, []
        keys = np.zeros((CONTEXT, KEY_HEADS, DIM))
        values = np.zeros((CONTEXT, KEY_HEADS, DIM))
        for at in range(steps):
            x, where = self.table[token : token + 1].astype(np.float64), np.array([at])
            n = norm_reference.rms_norm(x, w["norm"], EPS)
            heads = linear_reference.linear(n, w["qkv"]).reshape(1, -1, DIM)
            turned = rope_reference.rope(heads[:, : HEADS + KEY_HEADS], where, self.inv_freq)
            keys[at], values[at] = turned[0, HEADS:], heads[0, HEADS + KEY_HEADS :]
            query = turned[:, :HEADS]
            mixed = attention_reference.decode(query, keys, values, where, DIM**-0.5)
            x = linear_reference.linear(mixed.reshape(1, -1), w["out"], None, x)
            n = norm_reference.rms_norm(x, w["norm"], EPS)
            gated = activation_reference.silu_mul(
                linear_reference.linear(n, w["gate"]), linear_reference.linear(n, w["up"])
            )
            x = linear_reference.linear(gated, w["down"], None, x)
            token = int(linear_reference.linear(x, self.table).argmax())
            chosen.append(token)
        return chosen


def test_a_block_decodes_as_the_references_do(device, randn):
    block = Block(randn)
    block.place(device)
    chosen = []
    for _ in range(5):
        block.step()
        chosen.append(int(device.get(block.token)[0]))
    assert chosen == block.expected(5)


def test_a_block_in_a_graph(device, randn):
    """`wl.graph` runs a step and records it; replays go on from what is on the device."""
    block = Block(randn)
    block.place(device)
    graph = wl.graph(block.step)
    chosen = [int(device.get(block.token)[0])]
    for _ in range(4):
        graph.replay()
        chosen.append(int(device.get(block.token)[0]))
    assert chosen == block.expected(5)


def test_runs_are_equal_bit_by_bit(device, randn):
    block = Block(randn)
    logits = []
    for _ in range(2):
        block.place(device)
        block.step()
        block.step()
        logits.append(device.get(block.b["logits"]).copy())
    assert np.array_equal(*logits)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_torch_tensors_give_the_bits_of_arrays(device, randn, dtype):
    import torch

    place = "cpu" if device.name == "sim" else "cuda"
    x, w = randn((2, 200)), randn((33, 200), dtype)
    out = device.empty((2, 33), np.float32)
    linear.linear(device.put(x), device.put(w), out)
    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
    weights = torch.from_numpy(w.astype(np.float32)).to(place, kind)
    result = torch.empty((2, 33), device=place)
    linear.linear(torch.from_numpy(x).to(place), weights, result)
    assert np.array_equal(result.cpu().numpy(), device.get(out))
