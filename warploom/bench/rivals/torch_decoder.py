"""The rival of the engine: one token of a Llama model in plain torch operations, in a CUDA graph.

As a careful user would write it: fused projections, static key-value cache, scaled-dot-product
attention with grouped heads, token and position on the device. `compiled` puts each layer and the
head through torch.compile first.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from warploom.engine.config import ModelConfig
from warploom.engine.weights import Weights


def tensor(array: np.ndarray, place: str) -> torch.Tensor:
    """A NumPy array as a tensor, bf16 by its bits."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).to(place).view(torch.bfloat16)
    return torch.from_numpy(array).to(place)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, style: str) -> torch.Tensor:
    """Rotary embedding of [heads, dim]; all of `dim` is rotated."""
    if style == "interleaved":
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    else:
        a, b = x.float().chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return turned.to(x.dtype)


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMSNorm, summed in f32."""
    return F.rms_norm(x.float(), (x.shape[-1],), weight.float(), eps).to(x.dtype)


class TorchDecoder:
    """One sequence; `step` appends the token that it holds and picks the next one."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        context: int,
        compiled: bool,
        place: str = "cuda",
    ) -> None:
        self.config = config
        self.layers = [
            {name: tensor(array, place) for name, array in vars(layer).items()}
            for layer in weights.layers
        ]
        self.embedding = tensor(weights.embedding, place)
        self.head_weight = self.embedding if config.tied else tensor(weights.head, place)
        self.final_norm = tensor(weights.final_norm, place)
        self.frequencies = tensor(weights.frequencies, place)
        shape = (config.layers, 2, 1, config.kv_heads, context, config.head_dim)
        self.cache = torch.zeros(shape, dtype=self.embedding.dtype, device=place)
        self.slots = torch.arange(context, device=place)
        self.token = torch.zeros(1, dtype=torch.long, device=place)
        self.position = torch.zeros(1, dtype=torch.long, device=place)
        self.logits = torch.zeros(config.vocabulary, dtype=torch.float32, device=place)
        wrap: Callable[[Any], Any] = torch.compile if compiled else lambda function: function
        self._layer = wrap(self._plain_layer)
        self._head = wrap(self._plain_head)
        self._graph: torch.cuda.CUDAGraph | None = None

    def _plain_layer(
        self,
        x: torch.Tensor,
        w: dict[str, torch.Tensor],
        cache: torch.Tensor,
        position: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        c = self.config
        qkv = F.linear(norm(x, w["attention_norm"], c.norm_eps), w["qkv"])
        q, k, v = qkv.view(-1, c.head_dim).split([c.heads, c.kv_heads, c.kv_heads])
        q = rotate(q, cos, sin, c.rope_style)
        k = rotate(k, cos, sin, c.rope_style)
        cache[0].index_copy_(2, position, k[None, :, None])
        cache[1].index_copy_(2, position, v[None, :, None])
        mixed = F.scaled_dot_product_attention(
            q[None, :, None], cache[0], cache[1], attn_mask=mask, scale=c.scale, enable_gqa=True
        )
        x = x + F.linear(mixed.reshape(1, -1), w["attention_out"])
        gate, up = F.linear(norm(x, w["ffn_norm"], c.norm_eps), w["gate_up"]).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, w["down"])

    def _plain_head(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(norm(x, self.final_norm, self.config.norm_eps), self.head_weight)[0].float()

    def eager(self) -> None:
        """One step, operation by operation."""
        x = self.embedding[self.token]
        angles = self.position.float() * self.frequencies
        cos, sin = angles.cos(), angles.sin()
        mask = (self.slots <= self.position)[None, None, None]
        for w, cache in zip(self.layers, self.cache, strict=True):
            x = self._layer(x, w, cache, self.position, cos, sin, mask)
        self.logits.copy_(self._head(x))
        self.token.copy_(self.logits.argmax().view(1))
        self.position += 1

    def capture(self) -> None:
        """Record the step as a CUDA graph."""
        with torch.inference_mode():
            # Off the default stream, as capture demands; this also compiles.
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
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
