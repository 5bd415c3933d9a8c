"""Tiny Llama models in both file formats, with the same weights, for tests that need no download.

Knows the GGUF conversion's row permutation of q and k independently of the code under test.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
MERGES = (("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "w"))


@dataclass(frozen=True)
class Tiny:
    """Sizes of a tiny model."""

    layers: int = 2
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    feed_forward: int = 48
    context: int = 64
    tied: bool = True
    seed: int = 0
    quantised: bool = False


def tokens() -> list[str]:
    """The vocabulary: special tokens, the byte alphabet, merged tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *alphabet, *(a + b for a, b in MERGES)]


def weights(tiny: Tiny) -> dict[str, np.ndarray]:
    """Random weights under their Hugging Face names, in f32."""
    rng = np.random.default_rng(tiny.seed)
    q, kv = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim
    hidden, wide, count = tiny.hidden, tiny.feed_forward, len(tokens())

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    def norm() -> np.ndarray:
        return (1 + 0.1 * rng.standard_normal(hidden)).astype(np.float32)

    found = {"model.embed_tokens.weight": matrix(count, hidden)}
    for i in range(tiny.layers):
        base = f"model.layers.{i}."
        found[base + "input_layernorm.weight"] = norm()
        found[base + "self_attn.q_proj.weight"] = matrix(q, hidden) * 3
        found[base + "self_attn.k_proj.weight"] = matrix(kv, hidden) * 3
        found[base + "self_attn.v_proj.weight"] = matrix(kv, hidden)
        found[base + "self_attn.o_proj.weight"] = matrix(hidden, q)
        found[base + "post_attention_layernorm.weight"] = norm()
        found[base + "mlp.gate_proj.weight"] = matrix(wide, hidden)
        found[base + "mlp.up_proj.weight"] = matrix(wide, hidden)
        found[base + "mlp.down_proj.weight"] = matrix(hidden, wide)
    found["model.norm.weight"] = norm()
    if not tiny.tied:
        found["lm_head.weight"] = matrix(count, hidden)
    return found


_GGUF_NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip


def gguf_name(name: str) -> str:
    """The GGUF name of a Hugging Face tensor."""
    plain = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in plain:
        return plain[name]
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_GGUF_NAMES[rest.removesuffix('.weight')]}.weight"


def permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k projection as the GGUF conversion stores them: pairs side by side."""
    halves = rows.reshape(heads, 2, -1, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))


def write_gguf(path: Path, tiny: Tiny, architecture: str = "llama", **changes: object) -> Path:
    """Writes a GGUF file; `changes` replace or, with None, leave out metadata of the tokenizer."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Tiny")
    writer.add_block_count(tiny.layers)
    writer.add_context_length(tiny.context)
    writer.add_embedding_length(tiny.hidden)
    writer.add_feed_forward_length(tiny.feed_forward)
    writer.add_head_count(tiny.heads)
    writer.add_head_count_kv(tiny.kv_heads)
    writer.add_key_length(tiny.head_dim)
    writer.add_rope_dimension_count(tiny.head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens()))
    kinds = [3 if token in SPECIAL else 1 for token in tokens()]
    writer.add_tokenizer_model(str(changes.get("model", "gpt2")))
    writer.add_tokenizer_pre(str(changes.get("pre", "smollm")))
    writer.add_token_list(tokens())
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_eos_token_id(0)
    template = changes.get("template", TEMPLATE)
    if template is not None:
        writer.add_chat_template(str(template))
    for name, array in weights(tiny).items():
        heads = {"q_proj": tiny.heads, "k_proj": tiny.kv_heads}.get(name.split(".")[-2])
        stored = permuted(array, heads) if heads else array
        if tiny.quantised and stored.ndim == 2 and stored.shape[1] % 32 == 0:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(stored, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(name), stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_folder(folder: Path, tiny: Tiny, **settings: object) -> Path:
    """Writes a Hugging Face folder; `settings` go into config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "llama", "num_hidden_layers": tiny.layers, "hidden_size": tiny.hidden,
        "num_attention_heads": tiny.heads, "num_key_value_heads": tiny.kv_heads,
        "head_dim": tiny.head_dim, "intermediate_size": tiny.feed_forward,
        "vocab_size": len(tokens()), "max_position_embeddings": tiny.context,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": tiny.tied,
        "hidden_act": "silu", "eos_token_id": 0, **settings,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.numpy.save_file(weights(tiny), folder / "model.safetensors")
    vocabulary = {token: index for index, token in enumerate(tokens())}
    backend = Tokenizer(models.BPE(vocabulary, list(MERGES)))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(SPECIAL))
    backend.save(str(folder / "tokenizer.json"))
    details = {"chat_template": TEMPLATE, "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(details))
    return folder
