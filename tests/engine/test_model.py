"""The Python API over a scripted decoder: prompts of every kind, options, facts, refusals."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.engine import tiny
from tests.engine.fake import Script
from warploom.base.errors import Error, ModelError
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.model import Model
from warploom.engine.place import Place


def make(folder: Path, script: str = "hell no", context: int = 64, **changes) -> Model:
    checkpoint = open_checkpoint(tiny.write_gguf(folder / "tiny.gguf", tiny.Tiny(), **changes))
    tokenizer = checkpoint.tokenizer()
    decoder = Script([*tokenizer.encode(script, special=False), 0], context)
    return Model("tiny", checkpoint, tokenizer, decoder, Place("sim"), "f32", 0.5)


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return make(tmp_path)


def test_a_string_is_a_message_unless_raw(model: Model) -> None:
    chat = model.tokenizer.encode("<|user|>hello<|end|><|assistant|>", special=False)
    assert model.encode("hello") == chat
    assert model.encode([{"role": "user", "content": "hello"}]) == chat
    assert model.encode("hello", raw=True) == model.tokenizer.encode("hello", special=False)
    assert model.encode([5, 6, 7]) == [5, 6, 7]
    system = model.tokenizer.encode("<|system|>be kind<|end|>", special=False)
    assert model.encode("hello", system="be kind") == system + chat


def test_without_a_template_a_string_is_text(tmp_path: Path) -> None:
    model = make(tmp_path, template=None)
    assert not model.has_template
    assert model.encode("hello") == model.tokenizer.encode("hello", special=False)


def test_generate_gives_pieces(model: Model) -> None:
    generation = model.generate("hello", max_new_tokens=3)
    assert [piece.text for piece in generation] == ["hell", " ", "n"]
    assert generation.finish == "length"
    assert "".join(p.text for p in model.generate("hello", stop=" ")) == "hell"


def test_describe_says_what_runs_and_why(model: Model) -> None:
    facts = model.describe()
    assert facts["parameters"] == sum(a.size for a in tiny.weights(tiny.Tiny()).values())
    assert facts["weight_bytes"] == 4 * facts["parameters"]
    assert (facts["device"], facts["dtype"], facts["kernels"]) == ("sim", "f32", "unfused")
    assert facts["stored_as"] == {"F32": 20}


@pytest.mark.parametrize(
    ("case", "prompt", "options"),
    [
        ("a prompt longer than the context", "x" * 100, {"raw": True}),
        ("a prompt as long as the context", list(range(64)), {}),
        ("an empty prompt", "", {"raw": True}),
        ("no ids", [], {}),
        ("an id out of range", [1, 264], {}),
        ("an id that is a word", ["hello"], {}),
        ("a negative number of tokens", "a", {"max_new_tokens": -1}),
        ("a system text with raw", "a", {"raw": True, "system": "be kind"}),
        ("an impossible temperature", "a", {"temperature": -0.5}),
    ],
)
def test_text_of(model: Model, case: str, prompt, options: dict, golden) -> None:
    with pytest.raises(ModelError) as caught:
        model.generate(prompt, **options)
    golden(str(caught.value), case)


def test_text_of_messages_without_a_template(tmp_path: Path, golden) -> None:
    model = make(tmp_path, template=None)
    with pytest.raises(ModelError) as caught:
        model.generate([{"role": "user", "content": "a"}])
    golden(str(caught.value))


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("an unknown device", {"device": "tpu"}),
        ("an unknown dtype", {"dtype": "f8", "device": "sim"}),
        ("a context longer than the models", {"context": 1000, "device": "sim"}),
        ("a context of nothing", {"context": 0, "device": "sim"}),
    ],
)
def test_text_of_loading_with(tmp_path: Path, case: str, options: dict, golden) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())
    with pytest.raises(Error) as caught:
        load(path, **options)
    golden(str(caught.value).replace(str(tmp_path), "DIR"), case)


def test_text_of_a_missing_package(tmp_path: Path, golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModelError) as caught:
        load(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny()), device="sim")
    text = str(caught.value)
    assert "pip install 'warploom[engine]'" in text
    golden("\n".join(line for line in text.splitlines() if "importing it failed" not in line))
    with pytest.raises(ModelError) as caught:
        load(tiny.write_folder(tmp_path / "tiny", tiny.Tiny()), device="sim")
    assert caught.value.code == "E305"


def test_download_goes_through_the_hub(
    tmp_path: Path, golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.write_folder(tmp_path / "tiny", tiny.Tiny())
    asked: list[str] = []

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        asked.append(name)
        if name == "org/missing":
            raise OSError("404 Client Error: Repository Not Found\nmore lines")
        return str(folder)

    hub = SimpleNamespace(snapshot_download=snapshot)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as caught:
        load("org/missing", device="sim", download=True)
    golden(str(caught.value))
    with pytest.raises(ModelError) as caught:
        load("org/tiny", device="sim", download=True, context=1000)
    assert caught.value.code == "E306"
    assert asked == ["org/missing", "org/tiny"]
