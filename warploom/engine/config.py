"""What a model is: sizes, normalisation, rotary embedding, and the names of its tensors.

One `ModelConfig` for every source; a *family* says how to read it from GGUF metadata or from a
Hugging Face `config.json`, and which tensor is which. Knows no arrays and no kernels.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warploom.engine.refusal import refuse


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How the rotary frequencies are stretched for long contexts.

    `linear` divides all by `factor`; `llama3` only the slow ones, with a ramp between the two
    wave lengths; `table` divides by one number a frequency, stored with the weights.
    """

    kind: str
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and constants of one decoder-only model."""

    family: str
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    context: int
    norm_eps: float
    rope_base: float
    rope_style: str
    rotary_dim: int
    tied: bool
    rope_scaling: RopeScaling | None = None

    @property
    def q_size(self) -> int:
        """Width of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of the key (and of the value) projection."""
        return self.kv_heads * self.head_dim

    @property
    def scale(self) -> float:
        """What attention scores are multiplied by."""
        return self.head_dim**-0.5

    @property
    def parameters(self) -> int:
        """Number of weights, a tied output head counted once."""
        attention = self.hidden * (2 * self.q_size + 2 * self.kv_size)
        layer = attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden
        tables = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + tables + self.hidden

    def check(self, source: Path) -> None:
        """Raises ModelError E206 where the sizes contradict each other."""
        positive = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward")
        for name in (*positive, "vocabulary", "context"):
            if getattr(self, name) < 1:
                raise _unsupported(source, f"`{name}` is {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise _unsupported(
                source, f"{self.heads} query heads do not divide over {self.kv_heads} key heads"
            )
        if self.rotary_dim % 2 or not 2 <= self.rotary_dim <= self.head_dim:
            raise _unsupported(
                source, f"rotary dimension {self.rotary_dim} of heads of {self.head_dim}"
            )


def rotary_frequencies(config: ModelConfig, table: np.ndarray | None = None) -> np.ndarray:
    """The f32 angle a position of each rotary pair: [rotary_dim / 2].

    `table` holds the divisors of a `table` scaling. Computed in f32 like the usual frameworks,
    so that angles of far positions agree with theirs.
    """
    steps = np.arange(0, config.rotary_dim, 2, dtype=np.float32) / np.float32(config.rotary_dim)
    frequencies = (1.0 / np.power(np.float32(config.rope_base), steps)).astype(np.float32)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return (frequencies / np.float32(scaling.factor)).astype(np.float32)
    if scaling.kind == "table":
        assert table is not None, "a `table` scaling comes with its tensor"
        return (frequencies / table.astype(np.float32)).astype(np.float32)
    return _llama3_frequencies(frequencies, scaling)


def _llama3_frequencies(frequencies: np.ndarray, scaling: RopeScaling) -> np.ndarray:
    """Fast pairs stay, slow pairs are divided by the factor, between them a linear ramp."""
    turns = scaling.original_context * frequencies / (2 * np.pi)
    ramp = np.clip((turns - scaling.low) / (scaling.high - scaling.low), 0.0, 1.0)
    return ((1 - ramp) * frequencies / scaling.factor + ramp * frequencies).astype(np.float32)


# -- families --------------------------------------------------------------------------------------

LAYER_TENSORS = ("attention_norm", "q", "k", "v", "attention_out", "ffn_norm", "gate", "up", "down")

_GGUF_LLAMA = {
    "embedding": "token_embd.weight",
    "attention_norm": "blk.{}.attn_norm.weight",
    "q": "blk.{}.attn_q.weight",
    "k": "blk.{}.attn_k.weight",
    "v": "blk.{}.attn_v.weight",
    "attention_out": "blk.{}.attn_output.weight",
    "ffn_norm": "blk.{}.ffn_norm.weight",
    "gate": "blk.{}.ffn_gate.weight",
    "up": "blk.{}.ffn_up.weight",
    "down": "blk.{}.ffn_down.weight",
    "final_norm": "output_norm.weight",
    "head": "output.weight",
    "rope_table": "rope_freqs.weight",
}
_HF_LLAMA = {
    "embedding": "model.embed_tokens.weight",
    "attention_norm": "model.layers.{}.input_layernorm.weight",
    "q": "model.layers.{}.self_attn.q_proj.weight",
    "k": "model.layers.{}.self_attn.k_proj.weight",
    "v": "model.layers.{}.self_attn.v_proj.weight",
    "attention_out": "model.layers.{}.self_attn.o_proj.weight",
    "ffn_norm": "model.layers.{}.post_attention_layernorm.weight",
    "gate": "model.layers.{}.mlp.gate_proj.weight",
    "up": "model.layers.{}.mlp.up_proj.weight",
    "down": "model.layers.{}.mlp.down_proj.weight",
    "final_norm": "model.norm.weight",
    "head": "lm_head.weight",
}
FAMILIES = {"llama": {"gguf": _GGUF_LLAMA, "huggingface": _HF_LLAMA}}


def tensor_name(family: str, source: str, role: str, layer: int | None = None) -> str:
    """The name of a tensor in a file of this kind, e.g. `blk.3.attn_q.weight`."""
    name = FAMILIES[family][source].get(role, "")
    return name if layer is None else name.format(layer)


def from_gguf(metadata: dict[str, Any], tensors: dict[str, Any], source: Path) -> ModelConfig:
    """Reads the configuration from GGUF metadata. `tensors` maps names to table lines."""
    family = _known_family(metadata.get("general.architecture"), source)

    def value(key: str, default: Any = None) -> Any:
        found = metadata.get(f"{family}.{key}", default)
        if found is None:
            raise _unsupported(source, f"the metadata lacks `{family}.{key}`")
        if isinstance(found, list):
            raise _unsupported(source, f"`{family}.{key}` differs from layer to layer")
        return found

    heads, hidden = int(value("attention.head_count")), int(value("embedding_length"))
    head_dim = int(value("attention.key_length", hidden // max(1, heads)))
    tokens = metadata.get("tokenizer.ggml.tokens", [])
    config = ModelConfig(
        family=family,
        name=str(metadata.get("general.name", source.stem)),
        layers=int(value("block_count")),
        hidden=hidden,
        heads=heads,
        kv_heads=int(value("attention.head_count_kv", heads)),
        head_dim=head_dim,
        feed_forward=int(value("feed_forward_length")),
        vocabulary=int(value("vocab_size", len(tokens))),
        context=int(value("context_length")),
        norm_eps=float(value("attention.layer_norm_rms_epsilon")),
        rope_base=float(value("rope.freq_base", 10000.0)),
        # The converter of llama.cpp permutes the rows of q and k, so that pairs lie side by side.
        rope_style="interleaved",
        rotary_dim=int(value("rope.dimension_count", head_dim)),
        tied=_GGUF_LLAMA["head"] not in tensors,
        rope_scaling=_gguf_scaling(metadata, family, tensors, source),
    )
    config.check(source)
    return config


def _gguf_scaling(
    metadata: dict[str, Any], family: str, tensors: dict[str, Any], source: Path
) -> RopeScaling | None:
    if _GGUF_LLAMA["rope_table"] in tensors:
        return RopeScaling("table")
    kind = metadata.get(f"{family}.rope.scaling.type", "none")
    factor = float(metadata.get(f"{family}.rope.scaling.factor", 1.0))
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return None
    if kind == "linear":
        return RopeScaling("linear", factor)
    raise _unsupported(source, f"rotary scaling of type `{kind}`")


def from_huggingface(settings: dict[str, Any], source: Path) -> ModelConfig:
    """Reads the configuration from the contents of a `config.json`."""
    family = _known_family(settings.get("model_type"), source)

    def value(key: str, default: Any = None) -> Any:
        found = settings.get(key)
        found = default if found is None else found
        if found is None:
            raise _unsupported(source, f"config.json lacks `{key}`")
        return found

    for key in ("attention_bias", "mlp_bias"):
        if settings.get(key):
            raise _unsupported(source, f"`{key}` is true")
    if value("hidden_act", "silu") != "silu":
        raise _unsupported(source, f"the activation is `{settings['hidden_act']}`")
    heads, hidden = int(value("num_attention_heads")), int(value("hidden_size"))
    head_dim = int(value("head_dim", hidden // max(1, heads)))
    # transformers 5 keeps what older files say in `rope_theta` and `rope_scaling` in one place.
    rope = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    config = ModelConfig(
        family=family,
        name=str(settings.get("_name_or_path") or source.name),
        layers=int(value("num_hidden_layers")),
        hidden=hidden,
        heads=heads,
        kv_heads=int(value("num_key_value_heads", heads)),
        head_dim=head_dim,
        feed_forward=int(value("intermediate_size")),
        vocabulary=int(value("vocab_size")),
        context=int(value("max_position_embeddings")),
        norm_eps=float(value("rms_norm_eps")),
        rope_base=float(rope.get("rope_theta") or value("rope_theta", 10000.0)),
        rope_style="half",
        rotary_dim=head_dim,
        tied=bool(value("tie_word_embeddings", False)),
        rope_scaling=_huggingface_scaling(rope, source),
    )
    config.check(source)
    return config


def _huggingface_scaling(rope: dict[str, Any], source: Path) -> RopeScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling("linear", float(rope["factor"]))
    if kind == "llama3":
        return RopeScaling(
            "llama3",
            float(rope["factor"]),
            float(rope["low_freq_factor"]),
            float(rope["high_freq_factor"]),
            int(rope["original_max_position_embeddings"]),
        )
    raise _unsupported(source, f"rotary scaling of type `{kind}`")


def _known_family(name: Any, source: Path) -> str:
    if name in FAMILIES:
        return name
    shown = f"`{name}`" if name else "not stated"
    raise refuse(
        "E203",
        f"the architecture of {source.name} is {shown}, which this version does not run",
        notes=[f"file: {source}", "known architectures: " + ", ".join(sorted(FAMILIES))],
        hint="`warploom models list` names models that run",
    )


def _unsupported(source: Path, fact: str) -> Exception:
    return refuse(
        "E206",
        f"{source.name} asks for something that this version does not support",
        notes=[f"file: {source}", fact],
        hint="`warploom models list` names models that run",
    )
