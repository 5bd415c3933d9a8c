"""Text to token ids and back: the model's own tokenizer, and text that arrives token by token.

Built from a `tokenizer.json`, or from the vocabulary and merges in GGUF metadata. Knows neither
chat templates nor the model.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.engine.extras import need
from warploom.engine.refusal import refuse

_CONTROL, _USER_DEFINED = 3, 4

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# How a vocabulary's text is cut before merging, by `tokenizer.ggml.pre`; applied in turn.
_SPLITS: dict[str, tuple[str, ...]] = {
    "smollm": (r"\p{N}", _GPT2),
    "gpt-2": (_GPT2,),
    "default": (_GPT2,),
    "llama-bpe": (_LLAMA3,),
    "llama3": (_LLAMA3,),
    "llama-v3": (_LLAMA3,),
}


@dataclass
class Tokenizer:
    """The `tokenizers` object with what its file says about special tokens."""

    backend: Any
    end_ids: tuple[int, ...]
    bos_id: int | None = None
    bos_token: str = ""
    end_token: str = ""
    adds_bos: bool = False
    """Whether `encode(special=True)` has to put the start token first itself."""

    @property
    def size(self) -> int:
        """Number of tokens, added ones included."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, special: bool) -> list[int]:
        """Token ids of a text; special tokens written in it are recognised.

        `special` also adds the tokens that the model expects around a plain text. A chat
        template writes them itself.
        """
        ids = self.backend.encode(text, add_special_tokens=special).ids
        if special and self.adds_bos and self.bos_id is not None:
            ids = [self.bos_id, *ids]
        return list(ids)

    def decode(self, ids: list[int]) -> str:
        """The text of token ids, special tokens left out."""
        return self.backend.decode(ids, skip_special_tokens=True)


class TextStream:
    """Turns tokens into text as they come, never cutting a character in two."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # Tokens before `_shown` are given out; those from the start of the list on are kept as
        # context, since decoders treat the first token of a text differently.
        self._ids: list[int] = []
        self._shown = 0

    def push(self, token: int) -> str:
        """The text that became certain with this token; empty inside a character."""
        self._ids.append(token)
        piece = self._pending()
        if piece.endswith("\ufffd"):
            return ""
        self._ids = self._ids[self._shown :]
        self._shown = len(self._ids)
        return piece

    def finish(self) -> str:
        """What is still held back: bytes that never became a whole character."""
        piece = self._pending()
        self._ids, self._shown = [], 0
        return piece

    def _pending(self) -> str:
        before = self._tokenizer.decode(self._ids[: self._shown])
        return self._tokenizer.decode(self._ids)[len(before) :]


def from_gguf(metadata: dict[str, Any], source: Path) -> Tokenizer:
    """Builds the tokenizer that GGUF metadata describes. Raises ModelError E207."""
    kind = metadata.get("tokenizer.ggml.model")
    split = metadata.get("tokenizer.ggml.pre", "default")
    tokens = metadata.get("tokenizer.ggml.tokens")
    if kind != "gpt2" or split not in _SPLITS or not tokens:
        facts = [f"file: {source}", f"tokenizer: {kind}, text split: {split}"]
        facts.append("known: gpt2 with " + ", ".join(sorted(_SPLITS)))
        raise refuse(
            "E207",
            f"the tokenizer in {source.name} is of a kind that this version does not read",
            notes=facts,
            hint="use the model's Hugging Face folder, which brings a tokenizer.json",
        )
    need("tokenizers")  # which has a report of its own
    try:
        backend = _byte_level(tokens, metadata.get("tokenizer.ggml.merges", []), split)
        _add_special(backend, tokens, metadata.get("tokenizer.ggml.token_type", []))
    except Exception as error:  # the package raises bare Exception
        raise refuse(
            "E201",
            f"the tokenizer in {source.name} is damaged",
            notes=[f"file: {source}", str(error)],
            hint="fetch the file again",
        ) from error
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    ends = [
        metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")
    ]  # fmt: skip
    end_ids = tuple(dict.fromkeys(int(i) for i in ends if i is not None))
    return Tokenizer(
        backend,
        end_ids,
        bos_id=bos,
        bos_token=_token(tokens, bos),
        end_token=_token(tokens, end_ids[0] if end_ids else None),
        adds_bos=bool(metadata.get("tokenizer.ggml.add_bos_token", False)),
    )


def _token(tokens: list[str], index: int | None) -> str:
    return tokens[index] if index is not None and 0 <= index < len(tokens) else ""


def _byte_level(tokens: list[str], merges: list[str], split: str) -> Any:
    tokenizers = need("tokenizers")
    pre, models = tokenizers.pre_tokenizers, tokenizers.models
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, pairs, ignore_merges="llama" in split))
    cuts = [
        pre.Split(tokenizers.Regex(pattern), behavior="isolated") for pattern in _SPLITS[split]
    ]  # fmt: skip
    bytes_ = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre.Sequence([*cuts, bytes_])
    backend.decoder = tokenizers.decoders.ByteLevel()
    return backend


def _add_special(backend: Any, tokens: list[str], kinds: list[int]) -> None:
    """Control tokens are never cut and never shown; user-defined ones are never cut."""
    added = need("tokenizers").AddedToken
    control = [t for t, kind in zip(tokens, kinds, strict=False) if kind == _CONTROL]
    defined = [t for t, kind in zip(tokens, kinds, strict=False) if kind == _USER_DEFINED]
    backend.add_special_tokens([added(t, normalized=False, special=True) for t in control])
    backend.add_tokens([added(t, normalized=False) for t in defined])


def from_folder(folder: Path, settings: dict[str, Any], config: dict[str, Any]) -> Tokenizer:
    """Reads `tokenizer.json`.

    `settings` is the folder's `tokenizer_config.json`; `config` its generation settings, for the
    ids that end a text.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise refuse(
            "E207",
            f"{folder.name} has no tokenizer.json",
            notes=[f"folder: {folder}"],
            hint="save the tokenizer with save_pretrained of a fast tokenizer",
        )
    tokenizers = need("tokenizers")
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception
        raise refuse(
            "E201",
            f"tokenizer.json of {folder.name} is damaged or truncated",
            notes=[f"file: {path}", str(error)],
            hint="fetch the file again",
        ) from error
    end = config.get("eos_token_id")
    ids = list(end) if isinstance(end, list) else [end]
    end_token = _content(folder, "eos_token", settings)
    ids.append(backend.token_to_id(end_token) if end_token else None)
    bos_token = _content(folder, "bos_token", settings)
    for odd in (i for i in ids if not isinstance(i, int | None) or isinstance(i, bool)):
        raise _misspelt(folder, "eos_token_id", odd, "a whole number or a list of them")
    return Tokenizer(
        backend,
        tuple(dict.fromkeys(i for i in ids if i is not None)),
        bos_id=backend.token_to_id(bos_token) if bos_token else None,
        bos_token=bos_token,
        end_token=end_token,
    )


def _content(folder: Path, key: str, settings: dict[str, Any]) -> str:
    """Special tokens are written as a string, or as an object with its content."""
    token = settings.get(key)
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str | None):
        raise _misspelt(folder, key, token, "a text")
    return text or ""


def _misspelt(folder: Path, key: str, found: Any, wanted: str) -> Exception:
    return refuse(
        "E207",
        f"the tokenizer of {folder.name} has settings that make no sense",
        notes=[f"folder: {folder}", f"`{key}` is {found!r}, and {wanted} is meant"],
        hint="fetch tokenizer_config.json, config.json and generation_config.json again",
    )
