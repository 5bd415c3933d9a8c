"""Fetches ORG/NAME through huggingface_hub, where that package is installed and the user asks."""

from pathlib import Path

from warploom.engine.refusal import refuse

_PATTERNS = ["*.json", "*.safetensors", "*.jinja"]


def download(name: str) -> Path:
    """The local folder of a repository, fetched where it is not complete.

    Raises ModelError: E305 without huggingface_hub, E103 where the download fails.
    """
    try:
        # Not a dependency: whoever uses the hub has its package.
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise refuse(
            "E305",
            "--download needs the package huggingface_hub",
            notes=[f"importing it failed: {error}"],
            hint="pip install huggingface_hub",
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=_PATTERNS))
    except Exception as error:  # the package's own classes differ between its versions
        raise refuse(
            "E103",
            f"{name} was not fetched from the Hugging Face hub",
            notes=[f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"],
            hint="check the name, the network, and whether the repository needs a login",
        ) from error
