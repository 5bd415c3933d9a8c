"""What a model is: sizes, normalisation, rotary embedding, and the names of its tensors.

One `ModelConfig` for every source; a *family* says how to read it from GGUF metadata or from a
Hugging Face `config.json`, and which tensor is which. Knows no arrays and no kernels.
"""

from __future__ import annotations

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
    head_norms: bool = False
    """Whether queries and keys of a head are normalised before they turn."""
    gated: bool = True
    """Whether the MLP is silu(gate) · up, else gelu(up)."""
    biases: bool = False
    """Whether every matrix of a layer has a bias, and norms take the mean away and have one."""
    parallel: bool = False
    """Whether attention and MLP of a layer begin with the same stream."""

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
        qkv, up = self.q_size + 2 * self.kv_size, (1 + self.gated) * self.feed_forward
        layer = self.hidden * (self.q_size + qkv + up + self.feed_forward + 2)
        layer += 2 * self.head_dim * self.head_norms
        layer += (qkv + up + 4 * self.hidden) * self.biases
        tables = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + tables + self.hidden * (1 + self.biases)

    def check(self, source: Path) -> None:
        """Raises ModelError E206 where the sizes contradict each other."""
        positive = ("layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward")
        for name in (*positive, "vocabulary", "context"):
            if getattr(self, name) < 1:
                raise _unsupported(source, f"`{name}` is {getattr(self, name)}")
        if self.layers > _MOST_LAYERS:
            raise _unsupported(source, f"{self.layers:,} layers")
        if self.heads % self.kv_heads:
            raise _unsupported(
                source, f"{self.heads} query heads do not divide over {self.kv_heads} key heads"
            )
        if self.norm_eps < 0 or self.rope_base <= 0:
            raise _unsupported(
                source, f"epsilon {self.norm_eps} of the norms, base {self.rope_base} of the angles"
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


# A number in a file beyond this, or a model of more layers, is damage and not a model.
_LARGEST = 1e30
_MOST_LAYERS = 10_000

# -- families --------------------------------------------------------------------------------------

# Rows of q, k and v together, head by head, as GPT-NeoX stores them.
FUSED = "qkv_by_heads"

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
_HF_QWEN3 = {
    **_HF_LLAMA,
    "q_norm": "model.layers.{}.self_attn.q_norm.weight",
    "k_norm": "model.layers.{}.self_attn.k_norm.weight",
}
_HF_NEOX = {
    "embedding": "gpt_neox.embed_in.weight",
    "attention_norm": "gpt_neox.layers.{}.input_layernorm.weight",
    "attention_norm_bias": "gpt_neox.layers.{}.input_layernorm.bias",
    FUSED: "gpt_neox.layers.{}.attention.query_key_value.weight",
    FUSED + "_bias": "gpt_neox.layers.{}.attention.query_key_value.bias",
    "attention_out": "gpt_neox.layers.{}.attention.dense.weight",
    "out_bias": "gpt_neox.layers.{}.attention.dense.bias",
    "ffn_norm": "gpt_neox.layers.{}.post_attention_layernorm.weight",
    "ffn_norm_bias": "gpt_neox.layers.{}.post_attention_layernorm.bias",
    "up": "gpt_neox.layers.{}.mlp.dense_h_to_4h.weight",
    "up_bias": "gpt_neox.layers.{}.mlp.dense_h_to_4h.bias",
    "down": "gpt_neox.layers.{}.mlp.dense_4h_to_h.weight",
    "down_bias": "gpt_neox.layers.{}.mlp.dense_4h_to_h.bias",
    "final_norm": "gpt_neox.final_layer_norm.weight",
    "final_norm_bias": "gpt_neox.final_layer_norm.bias",
    "head": "embed_out.weight",
}
FAMILIES = {
    "llama": {"gguf": _GGUF_LLAMA, "huggingface": _HF_LLAMA},
    "qwen3": {"huggingface": _HF_QWEN3},
    "gpt_neox": {"huggingface": _HF_NEOX},
}


def tensor_name(family: str, source: str, role: str, layer: int | None = None) -> str:
    """The name of a tensor in a file of this kind, e.g. `blk.3.attn_q.weight`."""
    name = FAMILIES[family][source].get(role, "")
    return name if layer is None else name.format(layer)


def from_gguf(metadata: dict[str, Any], tensors: dict[str, Any], source: Path) -> ModelConfig:
    """Reads the configuration from GGUF metadata. `tensors` maps names to table lines."""
    family = _known_family(metadata.get("general.architecture"), "gguf", source)

    value = _Settings(metadata, source, "the metadata", f"{family}.")
    heads, hidden = value.whole("attention.head_count"), value.whole("embedding_length")
    head_dim = value.whole("attention.key_length", hidden // max(1, heads))
    tokens = metadata.get("tokenizer.ggml.tokens", [])
    config = ModelConfig(
        family=family,
        name=str(metadata.get("general.name", source.stem)),
        layers=value.whole("block_count"),
        hidden=hidden,
        heads=heads,
        kv_heads=value.whole("attention.head_count_kv", heads),
        head_dim=head_dim,
        feed_forward=value.whole("feed_forward_length"),
        vocabulary=value.whole("vocab_size", len(tokens)),
        context=value.whole("context_length"),
        norm_eps=value.real("attention.layer_norm_rms_epsilon"),
        rope_base=value.real("rope.freq_base", 10000.0),
        # The converter of llama.cpp permutes the rows of q and k, so that pairs lie side by side.
        rope_style="interleaved",
        rotary_dim=value.whole("rope.dimension_count", head_dim),
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
    value = _Settings(metadata, source, "the metadata", f"{family}.")
    kind, factor = value("rope.scaling.type", "none"), value.real("rope.scaling.factor", 1.0)
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return None
    if kind == "linear":
        return RopeScaling("linear", factor)
    raise _unsupported(source, f"rotary scaling of type `{kind}`")


def from_huggingface(settings: dict[str, Any], source: Path) -> ModelConfig:
    """Reads the configuration from the contents of a `config.json`."""
    family = _known_family(settings.get("model_type"), "huggingface", source)
    read = _neox if family == "gpt_neox" else _llama
    config = read(family, _Settings(settings, source))
    config.check(source)
    return config


class _Settings:
    """What a file says about its model, asked for by key; `where` is how a report calls it."""

    def __init__(
        self, found: dict[str, Any], source: Path, where: str = "config.json", prefix: str = ""
    ) -> None:
        self.source = source
        self._found = found
        self._where = where
        self._prefix = prefix

    def __call__(self, key: str, default: Any = None) -> Any:
        """The value of a key. Raises ModelError E206 where it is neither there nor usual."""
        found = self._found.get(self._prefix + key)
        found = default if found is None else found
        if found is None:
            raise _unsupported(self.source, f"{self._where} lacks `{self._prefix}{key}`")
        return found

    def whole(self, key: str, default: int | None = None) -> int:
        """A value that is a whole number. Raises ModelError E206 where it is none."""
        found = self.real(key, default)
        if found != found // 1:
            raise self._odd(key, found, "a whole number")
        return int(found)

    def real(self, key: str, default: float | None = None) -> float:
        """A value that is a finite number. Raises ModelError E206 where it is none."""
        found = self(key, default)
        if isinstance(found, list):
            raise _unsupported(self.source, f"`{self._prefix}{key}` differs from layer to layer")
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not -_LARGEST < found < _LARGEST:  # NaN is neither
            raise self._odd(key, found, "a number")
        return found

    def _odd(self, key: str, found: Any, wanted: str) -> Exception:
        text = f"`{self._prefix}{key}` is {found!r}, and {wanted} is meant"
        return _unsupported(self.source, text)

    def refuse(self, **wanted: Any) -> None:
        """Raises ModelError E206 where a key has another value than the one that is supported."""
        for key, value in wanted.items():
            found = self(key, value)
            if found != value:
                shown = str(found).lower() if isinstance(found, bool) else f"`{found}`"
                raise _unsupported(self.source, f"`{key}` is {shown}")

    @property
    def name(self) -> str:
        """What the model calls itself, else the folder's name."""
        return str(self._found.get("_name_or_path") or self.source.name)

    @property
    def rope(self) -> _Settings:
        """transformers 5 keeps what older files say in `rope_theta` and `rope_scaling` in one
        place."""
        found = self._found.get("rope_parameters") or self._found.get("rope_scaling") or {}
        if not isinstance(found, dict):
            raise self._odd("rope_scaling", found, "an object")
        return _Settings(found, self.source, "the rotary scaling in config.json")


def _llama(family: str, value: _Settings) -> ModelConfig:
    """Llama and Qwen3: RMSNorm, rotary halves, grouped heads, gated MLP, no biases."""
    value.refuse(attention_bias=False, mlp_bias=False, use_sliding_window=False, hidden_act="silu")
    heads, hidden = value.whole("num_attention_heads"), value.whole("hidden_size")
    head_dim = value.whole("head_dim", hidden // max(1, heads))
    return ModelConfig(
        family=family,
        name=value.name,
        layers=value.whole("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=value.whole("num_key_value_heads", heads),
        head_dim=head_dim,
        feed_forward=value.whole("intermediate_size"),
        vocabulary=value.whole("vocab_size"),
        context=value.whole("max_position_embeddings"),
        norm_eps=value.real("rms_norm_eps"),
        rope_base=value.rope.real("rope_theta", value.real("rope_theta", 10000.0)),
        rope_style="half",
        rotary_dim=head_dim,
        tied=bool(value("tie_word_embeddings", False)),
        rope_scaling=_huggingface_scaling(value.rope),
        head_norms=family == "qwen3",
    )


def _neox(family: str, value: _Settings) -> ModelConfig:
    """GPT-NeoX and Pythia: LayerNorm, biases, rotary halves of a part of a head, plain MLP."""
    value.refuse(attention_bias=True, hidden_act="gelu")
    heads, hidden = value.whole("num_attention_heads"), value.whole("hidden_size")
    head_dim = hidden // max(1, heads)
    share = value.rope.real("partial_rotary_factor", value.real("rotary_pct", 0.25))
    return ModelConfig(
        family=family,
        name=value.name,
        layers=value.whole("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        feed_forward=value.whole("intermediate_size"),
        vocabulary=value.whole("vocab_size"),
        context=value.whole("max_position_embeddings"),
        norm_eps=value.real("layer_norm_eps", 1e-5),
        rope_base=value.rope.real("rope_theta", value.real("rotary_emb_base", 10000.0)),
        rope_style="half",
        rotary_dim=int(head_dim * share),
        tied=bool(value("tie_word_embeddings", False)),
        rope_scaling=_huggingface_scaling(value.rope),
        gated=False,
        biases=True,
        parallel=bool(value("use_parallel_residual", True)),
    )


def _huggingface_scaling(rope: _Settings) -> RopeScaling | None:
    kind = rope("rope_type", rope("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling("linear", rope.real("factor"))
    if kind == "llama3":
        return RopeScaling(
            "llama3",
            rope.real("factor"),
            rope.real("low_freq_factor"),
            rope.real("high_freq_factor"),
            rope.whole("original_max_position_embeddings"),
        )
    raise _unsupported(rope.source, f"rotary scaling of type `{kind}`")


def _known_family(name: Any, format: str, source: Path) -> str:
    known = sorted(family for family, names in FAMILIES.items() if format in names)
    if name in known:
        return name
    shown = f"`{name}`" if name else "not stated"
    raise refuse(
        "E203",
        f"the architecture of {source.name} is {shown}, which this version does not run",
        notes=[f"file: {source}", "known architectures: " + ", ".join(known)],
        hint="`warploom models list` names models that run",
    )


def _unsupported(source: Path, fact: str) -> Exception:
    return refuse(
        "E206",
        f"{source.name} asks for something that this version does not support",
        notes=[f"file: {source}", fact],
        hint="`warploom models list` names models that run",
    )
