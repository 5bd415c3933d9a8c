"""`load` and `Model`: a model ready to answer, and everything a caller can ask of it.

Puts the parts together; holds no arithmetic and no file format.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from warploom.engine import hub, token_runner
from warploom.engine import runner as runner_module
from warploom.engine.chat import render
from warploom.engine.checkpoint import Checkpoint, open_checkpoint
from warploom.engine.config import ModelConfig
from warploom.engine.generation import Ahead, Generation, Progress
from warploom.engine.place import Place, choose
from warploom.engine.pull import find
from warploom.engine.refusal import refuse
from warploom.engine.registry import is_repository
from warploom.engine.room import check as check_memory
from warploom.engine.room import no_memory
from warploom.engine.runner import Runner
from warploom.engine.sampler import Sampling, check_count
from warploom.engine.token_runner import TokenRunner, pack, why_not
from warploom.engine.tokenizer import Tokenizer
from warploom.engine.weights import DTYPES, load_weights

Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]

KERNELS = ("token", "unfused")
TOKEN = "one launch a token"
UNFUSED = "one launch an operation"
MOST_ROUNDS = 256
"""Tokens of a launch: their logits are kept for the host."""


class Model:
    """A loaded model: one sequence at a time, on one device."""

    def __init__(
        self,
        name: str,
        checkpoint: Checkpoint,
        tokenizer: Tokenizer,
        runner: Runner | TokenRunner,
        place: Place,
        dtype: str,
        seconds: float,
        kernels: str = "unfused",
        why: str = UNFUSED,
    ) -> None:
        self.name = name
        self.config = checkpoint.config
        self.tokenizer = tokenizer
        self.runner = runner
        self.device = place.name
        self.dtype = dtype
        self.load_seconds = seconds
        self.kernels = kernels
        self.why = why
        self._checkpoint = checkpoint

    @property
    def path(self) -> Path:
        """The file or folder that the model was read from."""
        return self._checkpoint.path

    @property
    def context(self) -> int:
        """How many tokens prompt and answer may have together."""
        return self.runner.context

    @property
    def has_template(self) -> bool:
        """Whether the model brings a chat template."""
        return bool(self._checkpoint.template)

    def encode(self, prompt: Prompt, raw: bool = False, system: str | None = None) -> list[int]:
        """The token ids that a prompt becomes.

        A string is one message of the user for a model with a chat template, else (or with `raw`)
        plain text. Messages are mappings with `role` and `content`; integers are ids already.
        Raises ModelError: E208 template, E302 nothing to continue, E304 an id out of range.
        """
        if isinstance(prompt, str):
            if self.has_template and not raw:
                return self._chat([{"role": "user", "content": prompt}], system)
            if system is not None:
                raise refuse(
                    "E208",
                    f"a system text needs a chat template, and {self._unused_template(raw)}",
                    hint="put the text into the prompt",
                )
            return self._not_empty(self.tokenizer.encode(prompt, special=True))
        items: list[Any] = list(prompt)
        if items and isinstance(items[0], Mapping):
            return self._chat(items, system)
        return self._not_empty([self._valid_id(item) for item in items])

    def generate(
        self,
        prompt: Prompt,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: str | Sequence[str] = (),
        *,
        tokens_per_launch: int = 1,
        raw: bool = False,
        system: str | None = None,
        progress: Progress | None = None,
    ) -> Generation:
        """Answers a prompt; yields pieces with `text`, `id` and `logprob` as they come.

        Temperature 0 takes the best token (of equal ones the lowest id); otherwise temperature,
        top-k and top-p apply in this order, and the draw depends on `seed` and position only. It
        ends at the model's end token, at a `stop` text (not part of the answer), after
        `max_new_tokens`, or where the context is full. With `tokens_per_launch` the token kernel
        computes several at a time, which then come together; they are the same. Raises ModelError:
        what `encode` raises, E301 a prompt that fills the context, E303 an impossible setting.
        """
        sampling = Sampling(temperature, top_k, top_p, seed)
        check_count(max_new_tokens)
        self._check_rounds(tokens_per_launch, sampling)
        ids = self.encode(prompt, raw, system)
        self._check_length(len(ids), 1)
        stops = [stop] if isinstance(stop, str) else list(stop)
        return Generation(
            self.runner,
            self.tokenizer,
            ids,
            max_new_tokens,
            sampling,
            stops,
            progress,
            tokens_per_launch,
        )

    def logits(self, ids: Sequence[int], last: int | None = None) -> np.ndarray:
        """The f32 logits after each of the ids: [len(ids), vocabulary]; `last` keeps the last rows.

        Raises ModelError E301, E302 or E304 for ids that cannot be taken.
        """
        checked = self._not_empty([self._valid_id(item) for item in ids])
        self._check_length(len(checked), 0)
        return self.runner.all_logits(checked, len(checked) if last is None else last)

    def describe(self) -> dict[str, Any]:
        """Facts about the model and how it runs here; sizes in bytes."""
        config = self.config
        return {
            "model": self.name,
            "path": str(self.path),
            "architecture": config.family,
            "parameters": config.parameters,
            "layers": config.layers,
            "hidden": config.hidden,
            "heads": config.heads,
            "kv_heads": config.kv_heads,
            "head_dim": config.head_dim,
            "feed_forward": config.feed_forward,
            "vocabulary": config.vocabulary,
            "tied_embeddings": config.tied,
            "stored_as": self._checkpoint.kinds(),
            "chat_template": self.has_template,
            "device": self.device,
            "dtype": self.dtype,
            "context": self.context,
            "weight_bytes": config.parameters * np.dtype(DTYPES[self.dtype]).itemsize,
            "cache_bytes": self.runner.cache_bytes,
            "kernels": self.kernels,
            "why": self.why,
            "load_seconds": self.load_seconds,
        }

    def _chat(self, messages: Sequence[Mapping[str, str]], system: str | None) -> list[int]:
        template = self._checkpoint.template
        if not template:
            raise refuse(
                "E208",
                f"messages need a chat template, and {self.name} has none",
                hint="give the prompt as one string",
            )
        if system is not None:
            messages = [{"role": "system", "content": system}, *messages]
        text = render(template, messages, self.tokenizer, self.name)
        return self._not_empty(self.tokenizer.encode(text, special=False))

    def _unused_template(self, raw: bool) -> str:
        return "raw leaves it out" if raw and self.has_template else f"{self.name} has none"

    def _valid_id(self, item: Any) -> int:
        if isinstance(item, int | np.integer) and 0 <= item < self.config.vocabulary:
            return int(item)
        raise refuse(
            "E304",
            f"{item!r} is no token id of {self.name}",
            notes=[f"the vocabulary has the ids 0 to {self.config.vocabulary - 1}"],
            hint="give ids of the model's own tokenizer",
        )

    def _not_empty(self, ids: list[int]) -> list[int]:
        if not ids:
            raise refuse(
                "E302", "the prompt has no token, so there is nothing to continue",
                hint="give at least one character",
            )  # fmt: skip
        return ids

    def _check_rounds(self, count: int, sampling: Sampling) -> None:
        if not 1 <= count <= MOST_ROUNDS:
            raise refuse(
                "E303", f"tokens_per_launch is {count}; it must be from 1 to {MOST_ROUNDS}"
            )
        if count > 1 and not sampling.greedy:
            raise refuse(
                "E303",
                f"{count} tokens in a launch with temperature {sampling.temperature}",
                notes=["the launch goes on with the best token; a draw is the host's"],
                hint="leave the temperature at 0, or take one token a launch",
            )
        if count > 1 and not isinstance(self.runner, Ahead):
            raise refuse(
                "E303",
                f"{count} tokens in a launch, and this model runs in {UNFUSED}",
                notes=[self.why] if self.why != UNFUSED else [],
                hint="load it with kernels `token`, or take one token a launch",
            )

    def _check_length(self, tokens: int, room: int) -> None:
        if tokens + room <= self.context:
            return
        hint = "shorten the prompt"
        if self.context < self.config.context:
            hint += f", or load with a larger context (the model has {self.config.context:,})"
        raise refuse(
            "E301",
            f"the prompt has {tokens:,} tokens and the context {self.context:,}",
            notes=["prompt and answer share the context"] if room else [],
            hint=hint,
        )


def load(
    path_or_name: str | Path,
    device: str | None = None,
    dtype: str | None = None,
    context: int | None = None,
    *,
    kernels: str | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> Model:
    """Loads a model: a .gguf file, a Hugging Face folder, a name of `warploom models list`
    (fetched once), or ORG/NAME of the local Hugging Face cache (`download` fetches it).

    `device` is `sim`, `gpu` or `gpu:N` (default: the GPU where one is usable); `dtype` of weights
    and cache is `f32`, `bf16` or `f16` (default: f32 on the simulator, bf16 on a GPU); `context`
    is the number of tokens that prompt and answer share (default: what the model was made for).
    `kernels` is `token` (one launch a token) or `unfused` (one launch an operation); by default the
    first on a GPU where the model fits it, and `why` of the model says what does not.
    Raises ModelError E1xx where there is no such model, E2xx where its files cannot be used,
    E305 without the extra `engine`, E306 for an impossible option, E307 where the memory of the
    device does not suffice; LaunchError H021 for another device word, H020 where no GPU is usable.
    """
    start = time.perf_counter()
    place = choose(device)
    dtype = dtype or place.default_dtype
    if dtype not in DTYPES:
        raise refuse("E306", f"there is no dtype `{dtype}`", hint="give f32, bf16 or f16")
    word = str(path_or_name)
    checkpoint = open_checkpoint(_find(word, download, progress))
    most = checkpoint.config.context
    if context is not None and not 1 <= context <= most:
        raise refuse(
            "E306",
            f"the context cannot be {context:,}",
            notes=[f"{word} was made for up to {most:,} tokens"],
            hint=f"give a number from 1 to {most}",
        )
    if kernels not in (None, *KERNELS):
        raise refuse("E306", f"there are no kernels `{kernels}`", hint="give token or unfused")
    chosen, why = _kernels(checkpoint.config, place, dtype, kernels)
    room = context or most
    if chosen == "token":
        needed = partial(token_runner.sizes, checkpoint.config, place, dtype)
    else:
        needed = partial(runner_module.sizes, checkpoint.config, dtype)
    check_memory(word, needed, room, place)
    hear = progress or (lambda stage, done, total: None)
    tokenizer = checkpoint.tokenizer()
    put = place.put if chosen == "unfused" else _kept
    try:
        weights = load_weights(
            checkpoint, dtype, put, lambda done, total: hear("load", done, total)
        )
        if chosen == "token":
            packed = pack(
                checkpoint.config,
                weights,
                place,
                dtype,
                lambda done, total: hear("pack", done, total),
            )
            runner = TokenRunner(checkpoint.config, packed, place, dtype, room)
        else:
            runner = Runner(checkpoint.config, weights, place, dtype, room)
    except MemoryError as error:  # of the host, whose free memory nobody tells beforehand
        raise no_memory(word, room, str(error)) from error
    seconds = time.perf_counter() - start
    return Model(word, checkpoint, tokenizer, runner, place, dtype, seconds, chosen, why)


def _kept(array: np.ndarray) -> np.ndarray:
    """Weights stay on the host until they are packed."""
    return array


def _kernels(config: ModelConfig, place: Place, dtype: str, asked: str | None) -> tuple[str, str]:
    """Which kernels run a model, and why."""
    if asked == "unfused":
        return "unfused", f"{UNFUSED}, as asked for"
    obstacle = why_not(config, place, dtype)
    if asked == "token" and obstacle:
        raise refuse(
            "E306",
            "this model does not run in one launch a token",
            notes=[obstacle],
            hint="give unfused, or leave it out",
        )
    if asked != "token" and not place.is_gpu:
        return "unfused", UNFUSED
    if obstacle:
        return "unfused", f"{UNFUSED}: {obstacle}"
    return "token", TOKEN


def _find(word: str, download: bool, progress: Progress | None) -> Path:
    if download and is_repository(word) and not Path(word).exists():
        return hub.download(word)
    return find(word, progress)
