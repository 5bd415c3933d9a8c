"""The rival of the engine: one token of a model in plain torch operations, in a CUDA graph.

As a careful user would write it: fused projections, static key-value cache, scaled-dot-product
attention with grouped heads, token and position on the device. `compiled` puts the beginning, each
layer and the head through torch.compile first. In float32 the same operations are what bf16 logits
are held against.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from warploom.engine.config import ModelConfig
from warploom.engine.weights import Weights

Vector = torch.Tensor | None
Arrays = Sequence[torch.Tensor]
# A matrix-vector product becomes a reduction whose configuration is searched for, and the norms and
# sums around it become part of it. Triton's products with one row, and cuBLAS's, are slower.
OPTIONS = {"coordinate_descent_tuning": True}


def tensor(array: Any, place: str) -> torch.Tensor:
    """A NumPy array as a tensor, bf16 by its bits; a tensor as it is."""
    if isinstance(array, torch.Tensor):
        return array
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).to(place).view(torch.bfloat16)
    return torch.from_numpy(array).to(place)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, style: str) -> torch.Tensor:
    """Rotary embedding of [heads, dim]; columns behind the pairs stay."""
    count = 2 * cos.shape[-1]
    pairs, rest = x[..., :count].float(), x[..., count:]
    if style == "interleaved":
        a, b = pairs.unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    else:
        a, b = pairs.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return torch.cat((turned.to(x.dtype), rest), dim=-1)


def norm(x: torch.Tensor, weight: torch.Tensor, bias: Vector, eps: float) -> torch.Tensor:
    """RMSNorm, or LayerNorm where there is a bias, summed in f32."""
    if bias is not None:
        return F.layer_norm(x.float(), (x.shape[-1],), weight.float(), bias.float(), eps).to(
            x.dtype
        )
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


def forget() -> None:
    """Gives back what was compiled for earlier models, and memory that nothing uses."""
    torch._dynamo.reset()
    gc.collect()  # what was compiled holds decoders, and they their weights, in circles
    torch.cuda.empty_cache()


class TorchDecoder:
    """One sequence; `step` appends the token that it holds and picks the next one.

    `whole`: attention reads every row of the cache and needs no mask, which is right for the last
    token of the context and as fast as torch can be there. `options` are torch.compile's.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        context: int,
        compiled: bool,
        place: str = "cuda",
        whole: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.layers = [
            {name: tensor(a, place) for name, a in vars(layer).items() if a is not None}
            for layer in weights.layers
        ]
        self.embedding = tensor(weights.embedding, place)
        self.head_weight = self.embedding if config.tied else tensor(weights.head, place)
        self.final_norm = tensor(weights.final_norm, place)
        bias = weights.final_norm_bias
        self.final_norm_bias = None if bias is None else tensor(bias, place)
        self.frequencies = tensor(weights.frequencies, place)
        # An array each: parts of one array would be copied before and after they are written.
        shape, dtype = (context, config.kv_heads, config.head_dim), self.embedding.dtype
        self.keys, self.values = (
            [torch.zeros(shape, dtype=dtype, device=place) for _ in range(config.layers)]
            for _ in range(2)
        )
        self.slots = None if whole else torch.arange(context, device=place)
        self.token = torch.zeros(1, dtype=torch.long, device=place)
        self.position = torch.zeros(1, dtype=torch.long, device=place)
        self.logits = torch.zeros(config.vocabulary, dtype=torch.float32, device=place)
        wrap: Callable[[Any], Any] = lambda function: function  # noqa: E731
        if compiled:
            chosen = OPTIONS if options is None else options
            wrap = lambda f: torch.compile(f, dynamic=False, options=chosen)  # noqa: E731
        self._begin = wrap(self._plain_begin)
        self._layer = wrap(self._plain_layer)
        self._head = wrap(self._plain_head)
        self._graph: torch.cuda.CUDAGraph | None = None

    def _plain_begin(
        self, token: torch.Tensor, position: torch.Tensor, slots: Vector
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Vector]:
        angles = position.float() * self.frequencies
        mask = None if slots is None else (slots <= position)[None, None, None]
        return self.embedding[token], angles.cos(), angles.sin(), mask

    def _plain_layer(
        self,
        x: torch.Tensor,
        w: dict[str, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
        position: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        mask: Vector,
    ) -> torch.Tensor:
        c, eps = self.config, self.config.norm_eps
        attention = self._attention(x, w, keys, values, position, cos, sin, mask)
        middle = x if c.parallel else x + attention
        normed = norm(middle, w["ffn_norm"], w.get("ffn_norm_bias"), eps)
        up = linear(normed, w["gate_up"], w.get("up_bias"))
        if c.gated:
            gate, up = up.chunk(2, dim=-1)
            up = F.silu(gate) * up
        else:
            up = F.gelu(up)
        down = linear(up, w["down"], w.get("down_bias"))
        return x + attention + down if c.parallel else middle + down

    def _attention(
        self,
        x: torch.Tensor,
        w: dict[str, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
        position: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        mask: Vector,
    ) -> torch.Tensor:
        c = self.config
        normed = norm(x, w["attention_norm"], w.get("attention_norm_bias"), c.norm_eps)
        qkv = linear(normed, w["qkv"], w.get("qkv_bias"))
        q, k, v = qkv.view(-1, c.head_dim).split([c.heads, c.kv_heads, c.kv_heads])
        if c.head_norms:
            q = norm(q, w["q_norm"], None, c.norm_eps)
            k = norm(k, w["k_norm"], None, c.norm_eps)
        q = rotate(q, cos, sin, c.rope_style)
        k = rotate(k, cos, sin, c.rope_style)
        keys[position] = k[None]
        values[position] = v[None]
        mixed = F.scaled_dot_product_attention(
            q[None, :, None],
            keys.transpose(0, 1)[None],
            values.transpose(0, 1)[None],
            attn_mask=mask,
            scale=c.scale,
            enable_gqa=c.heads != c.kv_heads,
        )
        return linear(mixed.reshape(1, -1), w["attention_out"], w.get("out_bias"))

    def _plain_head(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        normed = norm(x, self.final_norm, self.final_norm_bias, self.config.norm_eps)
        logits = F.linear(normed, self.head_weight)[0].float()
        return logits, logits.argmax().view(1)

    def eager(self) -> None:
        """One step, operation by operation."""
        x, cos, sin, mask = self._begin(self.token, self.position, self.slots)
        for w, keys, values in zip(self.layers, self.keys, self.values, strict=True):
            x = self._layer(x, w, keys, values, self.position, cos, sin, mask)
        logits, best = self._head(x)
        self.logits.copy_(logits)
        self.token.copy_(best)
        self.position += 1

    def exact(self, token: int, position: int, keys: Arrays, values: Arrays) -> torch.Tensor:
        """Logits after a token in float32, over the same weights and keys and values [context,
        kv_heads, head_dim] of each layer, which stay as they are; one layer is wide at a time."""
        place = self.embedding.device
        at = torch.tensor([position], device=place)
        given = torch.tensor([token], device=place)
        x, cos, sin, mask = self._plain_begin(given, at, self.slots)
        x = x.float()
        for w, k, v in zip(self.layers, keys, values, strict=True):
            wide = {name: a.float() for name, a in w.items()}
            k, v = k.to(torch.float32, copy=True), v.to(torch.float32, copy=True)
            x = self._plain_layer(x, wide, k, v, at, cos, sin, mask)
        normed = norm(x, self.final_norm, self.final_norm_bias, self.config.norm_eps)
        return F.linear(normed, self.head_weight.float())[0]

    def capture(self) -> None:
        """Record the step as a CUDA graph."""
        with torch.inference_mode():
            # Off the default stream, as capture demands; this also compiles.
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.position.zero_()
                    self.eager()
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self.eager()
        torch.cuda.synchronize()

    def feed(self, ids: list[int]) -> None:
        """Start a sequence: the ids one by one through the graph, the last one's logits kept."""
        self.position.zero_()
        for item in ids:
            self.token.fill_(item)
            self.step()
        torch.cuda.synchronize()

    def step(self) -> None:
        """Append the token held on the device; it and its position advance there."""
        assert self._graph is not None, "capture first"
        self._graph.replay()

    def wait(self) -> None:
        """Until all steps are done."""
        torch.cuda.synchronize()


def linear(x: torch.Tensor, weight: torch.Tensor, bias: Vector) -> torch.Tensor:
    """A product with bf16 weights; a bias in f32 is added in the dtype of the weights."""
    return F.linear(x, weight, None if bias is None else bias.to(weight.dtype))
