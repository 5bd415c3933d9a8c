"""Tokenizers of both formats, and text that arrives token by token."""

import random
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.gguf_file import GgufFile
from warploom.engine.tokenizer import TextStream, Tokenizer, from_folder, from_gguf

TEXTS = (
    "", " ", "hello world", "hello  world 12 3", "naïve — 日本語 🙂", "<|user|>hello<|end|>",
    "a\n\n b\t", "x ٣٤ Ⅷ",
)  # fmt: skip


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())).tokenizer()


@pytest.mark.parametrize("text", TEXTS)
def test_both_formats_cut_alike_and_give_the_text_back(
    tmp_path: Path, tokenizer: Tokenizer, text: str
) -> None:
    folder = open_checkpoint(tiny.write_folder(tmp_path / "tiny", tiny.Tiny())).tokenizer()
    ids = tokenizer.encode(text, special=False)
    assert ids == folder.encode(text, special=False)
    assert tokenizer.backend.decode(ids, skip_special_tokens=False) == text
    assert folder.end_ids == tokenizer.end_ids == (0,)


def test_merges_and_special_tokens_apply(tokenizer: Tokenizer) -> None:
    names = [tiny.tokens()[i] for i in tokenizer.encode("<|user|>hell world<|end|>", False)]
    assert names == ["<|user|>", "hell", "Ġw", "o", "r", "l", "d", "<|end|>"]
    assert tokenizer.decode(tokenizer.encode("<|user|>hi<|end|>", False)) == "hi"


def test_smollm_splits_like_the_original_tokenizer(tokenizer: Tokenizer) -> None:
    original = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    for text in (*TEXTS, "v1.25e-3 and  7 of 9\n\n  2", "½ ² ٣٤ Ⅷ don't WE'LL", "  \n 4"):
        ours = tokenizer.backend.pre_tokenizer.pre_tokenize_str(text)
        assert [t for t, _ in ours] == [t for t, _ in original.pre_tokenize_str(text)], text


def test_a_stream_never_cuts_a_character(tokenizer: Tokenizer) -> None:
    rng = random.Random(0)
    for _ in range(50):
        text = "".join(rng.choice("ab é日🙂👩‍👧 \n") for _ in range(rng.randrange(1, 20)))
        stream, pieces = TextStream(tokenizer), []
        for token in tokenizer.encode(text, special=False):
            pieces.append(stream.push(token))
            assert "\ufffd" not in pieces[-1]
        assert stream.finish() == ""
        assert "".join(pieces) == text


def test_a_stream_that_ends_inside_a_character_shows_that(tokenizer: Tokenizer) -> None:
    stream = TextStream(tokenizer)
    ids = tokenizer.encode("a🙂", special=False)
    assert "".join(stream.push(token) for token in ids[:-1]) == "a"
    assert "\ufffd" in stream.finish()


def test_special_tokens_are_not_shown(tokenizer: Tokenizer) -> None:
    stream = TextStream(tokenizer)
    ids = tokenizer.encode("hell<|end|>o", special=False)
    assert [stream.push(token) for token in ids] == ["hell", "", "o"]


@pytest.mark.parametrize("change", [{"model": "t5"}, {"pre": "unheard-of"}])
def test_text_of_an_unknown_tokenizer(tmp_path: Path, change: dict, golden) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny(), **change)
    with pytest.raises(ModelError) as caught:
        open_checkpoint(path).tokenizer()
    golden(str(caught.value).replace(str(tmp_path), "DIR"), f"unknown {next(iter(change))}")


def test_text_of_a_folder_without_tokenizer(tmp_path: Path, golden) -> None:
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny())
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError) as caught:
        open_checkpoint(folder).tokenizer()
    golden(str(caught.value).replace(str(tmp_path), "DIR"))


def test_text_of_a_damaged_tokenizer(tmp_path: Path) -> None:
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny())
    (folder / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(ModelError, match=r"tokenizer\.json of tiny is damaged") as caught:
        open_checkpoint(folder).tokenizer()
    assert caught.value.code == "E201"


ODD = (3, 1.5, True, [], ["x"], {"content": 1}, float("nan"))


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize("key", ["eos_token", "bos_token", "eos_token_id"])
def test_settings_of_any_type_are_read_or_refused(tmp_path: Path, key: str, value: object) -> None:
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny())
    settings = {"eos_token_id": value} if key == "eos_token_id" else {}
    texts = {} if key == "eos_token_id" else {key: value}
    try:
        made = from_folder(folder, texts, settings)
    except ModelError as error:
        assert error.code == "E207"
        assert f"`{key}` is" in str(error)
    else:
        assert all(type(i) is int for i in made.end_ids)


def test_merges_of_unknown_tokens_are_damage(tmp_path: Path) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())
    metadata = dict(GgufFile(path).metadata)
    metadata["tokenizer.ggml.merges"] = ["no such"]
    with pytest.raises(ModelError) as caught:
        from_gguf(metadata, path)
    assert caught.value.code == "E201"
