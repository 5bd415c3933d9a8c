"""Turns messages into the prompt text that a model was trained on, with the model's own template.

Templates are Jinja programs out of a file that anybody may have written: they run sandboxed.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from warploom.engine.extras import need
from warploom.engine.refusal import refuse
from warploom.engine.tokenizer import Tokenizer

Message = Mapping[str, str]


def render(template: str, messages: Sequence[Message], tokenizer: Tokenizer, name: str) -> str:
    """The prompt text, ending where the model's answer starts.

    Raises ModelError E208 where the template refuses the messages or is broken.
    """
    jinja2, sandbox = need("jinja2"), need("jinja2.sandbox")
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise(jinja2)
    environment.globals["strftime_now"] = _now
    try:
        return environment.from_string(template).render(
            messages=[dict(message) for message in messages],
            add_generation_prompt=True,
            bos_token=tokenizer.bos_token,
            eos_token=tokenizer.end_token,
        )
    except (jinja2.TemplateError, TypeError, KeyError, ValueError) as error:
        raise refuse(
            "E208",
            f"the chat template of {name} does not take these messages",
            notes=[f"{type(error).__name__}: {error}"],
            hint="give a plain prompt: --raw on the command line, raw=True in Python",
        ) from error


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _now(pattern: str) -> str:
    return datetime.datetime.now().strftime(pattern)


def _raise(jinja2: Any) -> Any:
    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    return raise_exception
