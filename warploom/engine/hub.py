"""Fetches ORG/NAME through huggingface_hub, where that package is installed and the user asks."""

from pathlib import Path

from warploom.engine.extras import need
from warploom.engine.refusal import refuse

_PATTERNS = ["*.json", "*.safetensors", "*.jinja"]


def download(name: str) -> Path:
    """The local folder of a repository, fetched where it is not complete.

    Raises ModelError: E305 without huggingface_hub, E103 where the download fails.
    """
    hub = need("huggingface_hub", install="huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=_PATTERNS))
    except Exception as error:  # the package's own classes differ between its versions
        said = str(error).splitlines()
        raise refuse(
            "E103",
            f"{name} was not fetched from the Hugging Face hub",
            notes=[f"{type(error).__name__}: {said[0] if said else ''}"],
            hint="check the name, the network, and whether the repository needs a login",
        ) from error
