"""A model on disk, whatever its format: configuration, tokenizer, chat template, tensors.

The joint between file formats and weights. Knows no devices.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from warploom.engine import config as configs
from warploom.engine import tokenizer as tokenizers
from warploom.engine.config import ModelConfig
from warploom.engine.gguf_file import GgufFile
from warploom.engine.hf_directory import HuggingFaceFolder
from warploom.engine.refusal import refuse
from warploom.engine.tokenizer import Tokenizer


class TensorFile(Protocol):
    """What both formats offer: a table of tensors and a reader that converts."""

    @property
    def tensors(self) -> Any: ...
    def read(self, name: str, out: np.ndarray) -> None: ...
    def kind_name(self, name: str) -> str: ...


@dataclass
class Checkpoint:
    """An opened model. `source` is `gguf` or `huggingface`."""

    path: Path
    source: str
    config: ModelConfig
    file: TensorFile
    template: str | None
    details: Any

    def tokenizer(self) -> Tokenizer:
        """Builds the model's tokenizer (0.2 s for 50,000 tokens, so only where it is used)."""
        if isinstance(self.file, HuggingFaceFolder):
            settings = self.file.optional_json("tokenizer_config.json")
            generation = self.file.optional_json("generation_config.json")
            return tokenizers.from_folder(self.path, settings, {**self.file.settings, **generation})
        return tokenizers.from_gguf(self.details, self.path)

    def has(self, role: str) -> bool:
        """Whether models of this family have a tensor of this role."""
        return bool(configs.tensor_name(self.config.family, self.source, role))

    def shape(self, role: str, layer: int | None = None) -> tuple[int, ...]:
        """The shape of a tensor in the file. Raises ModelError E205 where it is missing."""
        name = configs.tensor_name(self.config.family, self.source, role, layer)
        if name not in self.file.tensors:
            raise refuse(
                "E205",
                f"{self.path.name} has no tensor `{name}`",
                notes=[f"file: {self.path}", f"tensors: {len(self.file.tensors):,}"],
                hint="the file is not complete; fetch it again",
            )
        return tuple(self.file.tensors[name].shape)

    def read(self, role: str, layer: int | None, out: np.ndarray) -> None:
        """De-quantises a tensor into `out`. Raises ModelError where shape or values are wrong."""
        found = self.shape(role, layer)
        name = configs.tensor_name(self.config.family, self.source, role, layer)
        if found != out.shape:
            raise refuse(
                "E205",
                f"tensor `{name}` of {self.path.name} has another shape than its model",
                notes=[
                    f"file: {self.path}",
                    f"shape: {list(found)}, needed: {list(out.shape)}",
                ],
                hint="the sizes in the file contradict its tensors; fetch it again",
            )
        self.file.read(name, out)
        # A sum meets every value: one NaN or infinity shows in it.
        with np.errstate(over="ignore", invalid="ignore"):
            total = out.reshape(-1, out.shape[-1]).sum(axis=0, dtype=np.float32)
        if not np.isfinite(total).all():
            raise refuse(
                "E201",
                f"tensor `{name}` of {self.path.name} holds values that are not finite",
                notes=[f"file: {self.path}"],
                hint="the file is damaged; fetch it again",
            )

    def kinds(self) -> dict[str, int]:
        """How many tensors there are of each storage type, most frequent first."""
        counts: dict[str, int] = {}
        for name in self.file.tensors:
            kind = self.file.kind_name(name)
            counts[kind] = counts.get(kind, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


def open_checkpoint(path: Path) -> Checkpoint:
    """Opens a GGUF file or a Hugging Face folder.

    Raises ModelError: E102 nothing there, E201 damaged, E202 another format, E203 unknown
    architecture, E206 an unsupported setting.
    """
    if path.is_dir():
        return _open_folder(path)
    if not path.is_file():
        raise refuse(
            "E102",
            f"there is no model at {path}",
            hint="give a .gguf file, a folder with config.json, or a name (warploom models list)",
        )
    file = GgufFile(path)
    config = configs.from_gguf(file.metadata, file.tensors, path)
    template = file.metadata.get("tokenizer.chat_template")
    return Checkpoint(path, "gguf", config, file, template, file.metadata)


def _open_folder(path: Path) -> Checkpoint:
    if not (path / "config.json").is_file():
        inside = sorted(path.glob("*.gguf"))
        if len(inside) == 1:
            return open_checkpoint(inside[0])
        found = ", ".join(file.name for file in inside) or "no .gguf file"
        raise refuse(
            "E102",
            f"the folder {path} holds no model",
            notes=[f"it has no config.json, and {found}"],
            hint="give a .gguf file, or a folder with config.json and *.safetensors",
        )
    folder = HuggingFaceFolder(path)
    config = configs.from_huggingface(folder.settings, path)
    return Checkpoint(path, "huggingface", config, folder, _folder_template(folder), None)


def _folder_template(folder: HuggingFaceFolder) -> str | None:
    """The chat template of a folder: its own file, or in the tokenizer's settings."""
    path = folder.path / "chat_template.jinja"
    if path.is_file():
        return path.read_text("utf-8")
    found = folder.optional_json("tokenizer_config.json").get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found}
        return named.get("default")
    return found
