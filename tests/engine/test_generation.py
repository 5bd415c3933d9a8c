"""The loop: pieces, stop texts, end tokens, limits, whole characters, an early end."""

import math
import random
from pathlib import Path

import pytest

from tests.engine import tiny
from tests.engine.fake import VOCABULARY, Script
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.generation import Generation, StopText
from warploom.engine.sampler import Sampling
from warploom.engine.tokenizer import Tokenizer


@pytest.fixture(autouse=True, params=[False, True], ids=["at once", "early"])
def _early(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that has done its work when a call returns, and one that has not."""
    monkeypatch.setattr(Script, "returns_early", request.param)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())).tokenizer()


def generate(
    tokenizer: Tokenizer, text: str, most: int = 100, end: bool = True, **options
) -> tuple[Generation, Script]:
    script = tokenizer.encode(text, special=False) + ([0] if end else [])
    decoder = Script(script, options.pop("context", 1000))
    sampling = options.pop("sampling", Sampling())
    return Generation(decoder, tokenizer, [7, 8, 9], most, sampling, **options), decoder


def test_pieces_add_up_and_the_end_token_is_one(tokenizer: Tokenizer) -> None:
    generation, decoder = generate(tokenizer, "hell no")
    pieces = list(generation)
    assert [piece.text for piece in pieces] == ["hell", " ", "n", "o", ""]
    assert generation.text == "hell no"
    assert generation.ids == [piece.id for piece in pieces] == decoder.script
    assert generation.finish == "stop"
    assert decoder.fed == [7, 8, 9]
    assert decoder.advanced == decoder.script[:-1], "the end token is not run through the model"
    assert len(generation.seconds.tokens) == len(pieces) - 1
    assert generation.seconds.token_median is not None


def test_logprob_is_that_of_the_models_own_distribution(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "a")
    wanted = 2.0 - math.log(math.exp(2.0) + VOCABULARY - 1)
    assert next(generation).logprob == pytest.approx(wanted)


def test_length_ends_it(tokenizer: Tokenizer) -> None:
    generation, decoder = generate(tokenizer, "hell no", most=2)
    assert [piece.text for piece in generation] == ["hell", " "]
    assert (generation.finish, len(decoder.advanced)) == ("length", 1)


def test_nothing_is_run_for_no_tokens(tokenizer: Tokenizer) -> None:
    generation, decoder = generate(tokenizer, "hell no", most=0)
    assert list(generation) == []
    assert (generation.finish, decoder.fed) == ("length", [])


def test_a_full_context_ends_it(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "abcdefgh", context=8)
    assert len(list(generation)) == 5
    assert generation.finish == "length"


def test_a_character_cut_by_the_limit_is_shown_as_such(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "a🙂", most=3)
    pieces = [piece.text for piece in generation]
    assert pieces[:2] == ["a", ""]
    assert "\ufffd" in pieces[2]


def test_a_stop_text_ends_it_and_is_no_part_of_the_answer(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "one, two, three", stop=[" th", "two,"])
    pieces = [piece.text for piece in generation]
    assert "".join(pieces) == generation.text == "one, "
    assert generation.finish == "stop"


def test_text_that_only_begins_like_a_stop_text_is_given_out(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "a STO b ST", stop=["STOP"])
    pieces = [piece.text for piece in generation]
    assert "".join(pieces) == generation.text == "a STO b ST"
    assert "S" not in "".join(pieces[:3])


def test_stop_texts_cut_wherever_the_pieces_end() -> None:
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choice("ab") for _ in range(20))
        stops = ["".join(rng.choice("ab") for _ in range(rng.randrange(1, 6))) for _ in range(2)]
        wanted = next(
            (
                min(part.find(stop) for stop in stops if part.endswith(stop))
                for part in (text[:length] for length in range(len(text) + 1))
                if any(part.endswith(stop) for stop in stops)
            ),
            None,
        )
        stream, got, at = StopText(stops), "", 0
        while at < len(text) and not stream.found:
            step = rng.randrange(1, 4)
            got += stream.push(text[at : at + step])
            at += step
        got += stream.finish()
        # Whatever a push holds, the stop text that is complete first counts.
        assert got == text[:wanted], (text, stops)


def test_closing_keeps_what_was_said(tokenizer: Tokenizer) -> None:
    generation, _ = generate(tokenizer, "hell no")
    next(generation)
    generation.close()
    assert list(generation) == []
    assert (generation.finish, generation.text) == ("interrupt", "hell")


def test_progress_hears_prompt_and_tokens(tokenizer: Tokenizer) -> None:
    heard: list[tuple[str, int, int]] = []
    generation, _ = generate(tokenizer, "hell", progress=lambda *what: heard.append(what), most=10)
    list(generation)
    assert heard == [("prompt", 0, 3), ("prompt", 3, 3), ("token", 1, 10), ("token", 2, 10)]


def test_sampling_repeats_by_seed(tokenizer: Tokenizer) -> None:
    def ids(seed: int) -> list[int]:
        sampling = Sampling(temperature=1.0, seed=seed)
        generation, decoder = generate(tokenizer, "abc", most=12, sampling=sampling)
        list(generation)
        assert decoder.advanced == generation.ids[:-1]
        return generation.ids

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
