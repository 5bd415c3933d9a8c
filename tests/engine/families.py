"""Tiny Qwen3 and GPT-NeoX folders, and what they say, straight from the tensors of the files.

Written from the models' papers and file formats, not from the code under test: float64, one head
and one token at a time.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from tests.engine import tiny

SETTINGS: dict[str, dict[str, Any]] = {
    "qwen3": {
        "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64, "head_dim": 32,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
        "max_position_embeddings": 100, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "tie_word_embeddings": True, "hidden_act": "silu", "attention_bias": False,
        "use_sliding_window": False,
    },
    "gpt_neox": {
        "model_type": "gpt_neox", "num_hidden_layers": 3, "hidden_size": 64,
        "num_attention_heads": 2, "intermediate_size": 192, "max_position_embeddings": 100,
        "layer_norm_eps": 1e-5, "rotary_emb_base": 10000, "rotary_pct": 0.25,
        "use_parallel_residual": True, "tie_word_embeddings": False, "hidden_act": "gelu",
    },
}  # fmt: skip


def settings(family: str, **changes: Any) -> dict[str, Any]:
    """The contents of config.json."""
    return {**SETTINGS[family], "vocab_size": len(tiny.tokens()), "eos_token_id": 0, **changes}


def write(folder: Path, family: str, **changes: Any) -> Path:
    """A model folder; `changes` go into config.json."""
    found = settings(family, **changes)
    tiny.write_folder(folder, tiny.Tiny())  # for its tokenizer
    (folder / "config.json").write_text(json.dumps(found))
    tensors = _qwen3(found) if family == "qwen3" else _neox(found)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return folder


class _Draw:
    def __init__(self) -> None:
        self._random = np.random.default_rng(11)

    def matrix(self, rows: int, columns: int, factor: float = 1.0) -> np.ndarray:
        values = factor * self._random.standard_normal((rows, columns)) / math.sqrt(columns)
        return values.astype(np.float32)

    def vector(self, length: int, middle: float) -> np.ndarray:
        return (middle + 0.2 * self._random.standard_normal(length)).astype(np.float32)


def _qwen3(s: dict[str, Any]) -> dict[str, np.ndarray]:
    draw, hidden, wide, dim = _Draw(), s["hidden_size"], s["intermediate_size"], s["head_dim"]
    q, kv = s["num_attention_heads"] * dim, s["num_key_value_heads"] * dim
    found = {"model.embed_tokens.weight": draw.matrix(s["vocab_size"], hidden)}
    for i in range(s["num_hidden_layers"]):
        base = f"model.layers.{i}."
        found[base + "input_layernorm.weight"] = draw.vector(hidden, 1)
        found[base + "self_attn.q_proj.weight"] = draw.matrix(q, hidden)
        found[base + "self_attn.k_proj.weight"] = draw.matrix(kv, hidden)
        found[base + "self_attn.v_proj.weight"] = draw.matrix(kv, hidden)
        found[base + "self_attn.q_norm.weight"] = draw.vector(dim, 1)
        found[base + "self_attn.k_norm.weight"] = draw.vector(dim, 1)
        found[base + "self_attn.o_proj.weight"] = draw.matrix(hidden, q)
        found[base + "post_attention_layernorm.weight"] = draw.vector(hidden, 1)
        found[base + "mlp.gate_proj.weight"] = draw.matrix(wide, hidden)
        found[base + "mlp.up_proj.weight"] = draw.matrix(wide, hidden)
        found[base + "mlp.down_proj.weight"] = draw.matrix(hidden, wide)
    found["model.norm.weight"] = draw.vector(hidden, 1)
    return found


def _neox(s: dict[str, Any]) -> dict[str, np.ndarray]:
    draw, hidden, wide = _Draw(), s["hidden_size"], s["intermediate_size"]
    found = {"gpt_neox.embed_in.weight": draw.matrix(s["vocab_size"], hidden, 4)}

    def norm(name: str) -> None:
        found[name + ".weight"] = draw.vector(hidden, 1)
        found[name + ".bias"] = draw.vector(hidden, 0)

    def linear(name: str, rows: int, columns: int, factor: float = 1.0) -> None:
        found[name + ".weight"] = draw.matrix(rows, columns, factor)
        found[name + ".bias"] = draw.vector(rows, 0)

    for i in range(s["num_hidden_layers"]):
        base = f"gpt_neox.layers.{i}."
        norm(base + "input_layernorm")
        norm(base + "post_attention_layernorm")
        linear(base + "attention.query_key_value", 3 * hidden, hidden, 2)
        linear(base + "attention.dense", hidden, hidden)
        linear(base + "mlp.dense_h_to_4h", wide, hidden)
        linear(base + "mlp.dense_4h_to_h", hidden, wide)
    norm("gpt_neox.final_layer_norm")
    found["embed_out.weight"] = draw.matrix(s["vocab_size"], hidden)
    return found


# -- what they say ---------------------------------------------------------------------------------


def logits(folder: Path, ids: list[int], rounded: Any = np.float32) -> np.ndarray:
    """Logits [len(ids), vocabulary] with weights rounded to a dtype."""
    s = json.loads((folder / "config.json").read_text())
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    w = {name: a.astype(rounded).astype(np.float64) for name, a in tensors.items()}
    return _say_qwen3(s, w, ids) if s["model_type"] == "qwen3" else _say_neox(s, w, ids)


def _say_qwen3(s: dict[str, Any], w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    dim, eps = s["head_dim"], s["rms_norm_eps"]
    heads, shared = s["num_attention_heads"], s["num_key_value_heads"]
    x = w["model.embed_tokens.weight"][ids]
    for i in range(s["num_hidden_layers"]):
        base = f"model.layers.{i}."
        h = _rms(x, w[base + "input_layernorm.weight"], eps)
        parts = [
            [row.reshape(-1, dim) for row in h @ w[base + f"self_attn.{p}_proj.weight"].T]
            for p in "qkv"
        ]
        for part, name in zip(parts, ("q_norm", "k_norm"), strict=False):
            for t, row in enumerate(part):
                row = _rms(row, w[base + f"self_attn.{name}.weight"], eps)
                part[t] = np.stack([_turn(one, t, dim, s["rope_theta"]) for one in row])
        mixed = _attend(*parts, [n // (heads // shared) for n in range(heads)])
        x = x + mixed @ w[base + "self_attn.o_proj.weight"].T
        h = _rms(x, w[base + "post_attention_layernorm.weight"], eps)
        gate = h @ w[base + "mlp.gate_proj.weight"].T
        up = h @ w[base + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[base + "mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return _rms(x, w["model.norm.weight"], eps) @ head.T


def _say_neox(s: dict[str, Any], w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    heads = s["num_attention_heads"]
    dim = s["hidden_size"] // heads
    turned = int(dim * s["rotary_pct"])

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        d = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((d * d).mean(-1, keepdims=True) + s["layer_norm_eps"])
        return d / scale * w[name + ".weight"] + w[name + ".bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    x = w["gpt_neox.embed_in.weight"][ids]
    for i in range(s["num_hidden_layers"]):
        base = f"gpt_neox.layers.{i}."
        q, k, v = [], [], []
        fused = linear(norm(x, base + "input_layernorm"), base + "attention.query_key_value")
        for t, row in enumerate(fused):
            # A head has its query, its key and its value beside each other.
            per_head = row.reshape(heads, 3 * dim)
            q.append(np.stack([_turn(h[:dim], t, turned, 1e4) for h in per_head]))
            k.append(np.stack([_turn(h[dim : 2 * dim], t, turned, 1e4) for h in per_head]))
            v.append(per_head[:, 2 * dim :])
        attention = linear(_attend(q, k, v, list(range(heads))), base + "attention.dense")
        middle = x if s["use_parallel_residual"] else x + attention
        up = linear(norm(middle, base + "post_attention_layernorm"), base + "mlp.dense_h_to_4h")
        up = 0.5 * up * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        x = x + attention + linear(up, base + "mlp.dense_4h_to_h")
    return norm(x, "gpt_neox.final_layer_norm") @ w["embed_out.weight"].T


def _rms(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def _turn(head: np.ndarray, position: int, count: int, base: float) -> np.ndarray:
    """The first `count` columns in pairs (i, i + count / 2)."""
    out, half = head.copy(), count // 2
    for i in range(half):
        angle = position * base ** (-2 * i / count)
        a, b = head[i], head[i + half]
        out[i] = a * math.cos(angle) - b * math.sin(angle)
        out[i + half] = b * math.cos(angle) + a * math.sin(angle)
    return out


def _attend(
    q: list[np.ndarray], k: list[np.ndarray], v: list[np.ndarray], of_head: list[int]
) -> np.ndarray:
    """[tokens, heads · width]; head n has the keys of `of_head[n]`."""
    rows = []
    for t in range(len(q)):
        mixed = []
        for n, shared in enumerate(of_head):
            keys = np.stack([k[p][shared] for p in range(t + 1)])
            values = np.stack([v[p][shared] for p in range(t + 1)])
            scores = keys @ q[t][n] / math.sqrt(len(q[t][n]))
            weights = np.exp(scores - scores.max())
            mixed.append(weights / weights.sum() @ values)
        rows.append(np.concatenate(mixed))
    return np.stack(rows)
