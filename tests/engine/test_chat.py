"""Chat templates: rendered like transformers does, sandboxed, refused in words."""

from pathlib import Path

import pytest

from tests.engine import tiny
from warploom.base.errors import ModelError
from warploom.engine.chat import render
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.tokenizer import Tokenizer

USER = [{"role": "user", "content": "hello"}]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny())).tokenizer()


def test_messages_become_the_prompt_text(tokenizer: Tokenizer) -> None:
    messages = [{"role": "system", "content": "be brief"}, *USER]
    text = render(tiny.TEMPLATE, messages, tokenizer, "tiny")
    assert text == "<|system|>be brief<|end|><|user|>hello<|end|><|assistant|>"


def test_blocks_swallow_their_line_and_tools_of_templates_exist(tokenizer: Tokenizer) -> None:
    template = (
        "{% for m in messages %}\n    {% if m.role == 'skip' %}{% continue %}{% endif %}\n"
        "{{ m.content | tojson }}{{ eos_token }}\n{% endfor %}\n"
        "{{ strftime_now('%Y') | length }}"
    )
    messages = [{"role": "skip", "content": "no"}, {"role": "user", "content": 'é "<'}]
    assert render(template, messages, tokenizer, "tiny") == '"é \\"<"<|end|>\n4'


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("refusing", "{{ raise_exception('roles must alternate') }}"),
        ("escaping", "{{ messages.__class__.__mro__ }}"),
    ],
)
def test_text_of_a_template_that_fails(
    tokenizer: Tokenizer, name: str, template: str, golden
) -> None:
    with pytest.raises(ModelError) as caught:
        render(template, USER, tokenizer, "tiny")
    golden(str(caught.value), name)


def test_a_template_that_does_not_parse_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ModelError, match="TemplateSyntaxError") as caught:
        render("{% for m in messages %}", USER, tokenizer, "tiny")
    assert caught.value.code == "E208"
