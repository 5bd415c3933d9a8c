"""Configurations from both formats, rotary frequencies, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.config import RopeScaling, from_huggingface, rotary_frequencies

SETTINGS = {
    "model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "head_dim": 64,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
    "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
}  # fmt: skip
SOURCE = Path("models/llama")


def test_both_formats_give_the_same_sizes(tmp_path: Path) -> None:
    sizes = tiny.Tiny(layers=1, tied=False)
    gguf = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", sizes)).config
    folder = open_checkpoint(tiny.write_folder(tmp_path / "tiny", sizes)).config
    for name in ("family", "layers", "hidden", "heads", "kv_heads", "head_dim", "feed_forward",
                 "vocabulary", "context", "rope_base", "rotary_dim", "tied"):  # fmt: skip
        assert getattr(gguf, name) == getattr(folder, name), name
    assert gguf.norm_eps == pytest.approx(folder.norm_eps, rel=1e-6)
    assert (gguf.rope_style, folder.rope_style) == ("interleaved", "half")
    assert not gguf.tied


def test_parameters_count_every_weight() -> None:
    for tied in (True, False):
        sizes = tiny.Tiny(tied=tied)
        wanted = sum(array.size for array in tiny.weights(sizes).values())
        config = from_huggingface(
            {
                **SETTINGS, "num_hidden_layers": sizes.layers, "hidden_size": sizes.hidden,
                "head_dim": sizes.head_dim, "num_attention_heads": sizes.heads,
                "num_key_value_heads": sizes.kv_heads, "intermediate_size": sizes.feed_forward,
                "vocab_size": len(tiny.tokens()), "tie_word_embeddings": tied,
            },
            SOURCE,
        )  # fmt: skip
        assert config.parameters == wanted


def test_llama3_scaling_keeps_fast_pairs_and_stretches_slow_ones() -> None:
    config = from_huggingface(SETTINGS, SOURCE)
    assert config.rope_scaling == RopeScaling("llama3", 32.0, 1.0, 4.0, 8192)
    scaled = rotary_frequencies(config).astype(np.float64)
    plain = 500000.0 ** (-np.arange(0, 64, 2) / 64)
    wave = 2 * np.pi / plain
    for pair in range(32):
        if wave[pair] < 8192 / 4:
            wanted = plain[pair]
        elif wave[pair] > 8192 / 1:
            wanted = plain[pair] / 32
        else:
            smooth = (8192 / wave[pair] - 1) / (4 - 1)
            wanted = (1 - smooth) * plain[pair] / 32 + smooth * plain[pair]
        assert scaled[pair] == pytest.approx(wanted, rel=1e-5), pair


def test_rope_settings_of_transformers_5_are_read() -> None:
    rope = {"rope_type": "default", "rope_theta": 12345.0}
    settings = {**SETTINGS, "rope_parameters": rope, "rope_scaling": None, "rope_theta": None}
    config = from_huggingface(settings, SOURCE)
    assert (config.rope_base, config.rope_scaling) == (12345.0, None)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("architecture", {"model_type": "mamba"}),
        ("no architecture", {"model_type": None}),
        ("bias", {"attention_bias": True}),
        ("activation", {"hidden_act": "gelu"}),
        ("scaling", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}),
        ("heads", {"num_key_value_heads": 5}),
        ("missing", {"rms_norm_eps": None}),
        ("empty", {"num_hidden_layers": 0}),
    ],
)
def test_text_of_a_config_that_does_not_run(name: str, changes: dict, golden) -> None:
    with pytest.raises(ModelError) as caught:
        from_huggingface({**SETTINGS, **changes}, SOURCE)
    golden(str(caught.value), name)


def test_text_of_an_unknown_architecture_in_gguf(tmp_path: Path, golden) -> None:
    path = tiny.write_gguf(tmp_path / "other.gguf", tiny.Tiny(), architecture="rwkv7")
    with pytest.raises(ModelError) as caught:
        open_checkpoint(path)
    golden(str(caught.value).replace(str(tmp_path), "DIR"))


# Values that a damaged or hand-written file may hold in the place of any other.
ODD = ("x", [], {}, True, -1, 0, 1.5, float("nan"), float("inf"), 10**400, None)
KEYS = (*SETTINGS, "hidden_act", "attention_bias")
DETAILS = ("rope_type", "factor", "low_freq_factor", "original_max_position_embeddings")


@pytest.mark.parametrize("value", ODD, ids=lambda v: str(v)[:4])
def test_a_setting_of_any_type_is_read_or_refused(value: object) -> None:
    for key in KEYS:
        read_or_refused({**SETTINGS, key: value})
    for key in DETAILS:
        read_or_refused({**SETTINGS, "rope_scaling": {**SETTINGS["rope_scaling"], key: value}})
    for key in ("rotary_pct", "use_parallel_residual", "layer_norm_eps"):
        read_or_refused({**SETTINGS, "model_type": "gpt_neox", "rope_scaling": None, key: value})


def read_or_refused(settings: dict) -> None:
    try:
        config = from_huggingface(settings, SOURCE)
    except ModelError as error:
        assert error.code in ("E203", "E206"), settings
        return
    assert 1 <= config.layers < 10**6
    assert config.hidden > 0 and config.norm_eps >= 0 and config.rope_base > 0


def test_the_text_names_the_setting_and_its_value(golden) -> None:
    with pytest.raises(ModelError) as caught:
        from_huggingface({**SETTINGS, "hidden_size": "2048"}, SOURCE)
    golden(str(caught.value))


def test_a_model_for_which_this_machine_has_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden
) -> None:
    def refusing(*_: object) -> None:
        raise MemoryError("Unable to allocate 58.2 TiB")

    monkeypatch.setattr("warploom.engine.model.Runner", refusing)
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny())
    with pytest.raises(ModelError) as caught:
        load(folder, device="sim")
    assert caught.value.code == "E307"
    golden(str(caught.value).replace(str(tmp_path), "…"))
