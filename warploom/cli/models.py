"""`warploom models list|pull|show|path|remove`: which models there are, and where.

Answers go to stdout; written on the engine's registry.
"""

import argparse
import sys
from typing import Any

from warploom.cli import json_file
from warploom.cli.verbs import FINE, NO
from warploom.engine import registry
from warploom.engine.checkpoint import Checkpoint, open_checkpoint
from warploom.engine.pull import pull, remove
from warploom.engine.refusal import refuse
from warploom.engine.registry import KNOWN, KnownModel
from warploom.engine.ticker import Ticker

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Add the verb to the command line."""
    parser = commands.add_parser(
        "models",
        help="list, pull, show and remove models",
        description="Lists, fetches, shows and removes models.",
        epilog="Models lie in the folder WARPLOOM_MODELS, by default in the user's cache.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the models that can be fetched by name")
    listing.add_argument("--json", metavar="FILE", help="write JSON (- : to stdout)")
    fetch = actions.add_parser("pull", help="fetch a model, checking its hash")
    fetch.add_argument("name", metavar="NAME")
    show = actions.add_parser("show", help="what a model is")
    show.add_argument("name", metavar="NAME-or-PATH")
    show.add_argument("--json", metavar="FILE", help="write JSON (- : to stdout)")
    where = actions.add_parser("path", help="print where a fetched model lies")
    where.add_argument("name", metavar="NAME")
    drop = actions.add_parser("remove", help="delete a fetched model")
    drop.add_argument("name", metavar="NAME")


def run(args: argparse.Namespace) -> int:
    """Run one action; returns the exit code."""
    if args.action == "list":
        return _list(args.json)
    if args.action == "show":
        return _show(args.name, args.json)
    model = registry.known(args.name)
    if args.action == "pull":
        return _pull(model)
    if args.action == "path":
        return _path(model)
    return _remove(model)


def _list(target: str | None) -> int:
    rows = [
        {
            "name": model.name,
            "title": model.title,
            "licence": model.licence,
            "bytes": model.bytes,
            "pulled": registry.is_pulled(model),
            "path": str(registry.place_of(model)),
        }
        for model in KNOWN.values()
    ]
    if target:
        json_file.write(target, {"schema": SCHEMA, "models": rows})
        return FINE
    for row in rows:
        state = "here" if row["pulled"] else "not fetched"
        size = f"{row['bytes'] / 1e6:.0f} MB"
        print(f"{row['name']:16} {size:>8}  {row['licence']:12} {state:12} {row['title']}")
    return FINE


def _pull(model: KnownModel) -> int:
    if registry.is_whole(model):
        print(f"{model.name} is here already", file=sys.stderr)
    else:
        with Ticker(sys.stderr) as progress:
            pull(model, progress)
    print(registry.place_of(model))
    return FINE


def _path(model: KnownModel) -> int:
    found = registry.locate(model.name)
    if isinstance(found, KnownModel):
        raise refuse(
            "E102",
            f"{model.name} is not on this machine",
            notes=[f"it would lie at {registry.place_of(model)}"],
            hint=f"fetch it: warploom models pull {model.name}",
        )
    print(found)
    return FINE


def _remove(model: KnownModel) -> int:
    where = remove(model)
    if where is None:
        print(f"{model.name} is not on this machine", file=sys.stderr)
        return NO
    print(f"removed {where}", file=sys.stderr)
    return FINE


def _show(word: str, target: str | None) -> int:
    found = registry.locate(word)
    if isinstance(found, KnownModel):
        facts = _unfetched(found)
    else:
        facts = _facts(word, open_checkpoint(found))
    if target:
        json_file.write(target, {"schema": SCHEMA, **facts})
        return FINE
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):{width}}  {_shown(value)}")
    return FINE


def _unfetched(model: KnownModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "title": model.title,
        "licence": model.licence,
        "bytes": model.bytes,
        "sha256": model.sha256,
        "pulled": False,
        "path": str(registry.place_of(model)),
    }


def _facts(word: str, checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config
    return {
        "model": word,
        "path": str(checkpoint.path),
        "title": config.name,
        "format": checkpoint.source,
        "architecture": config.family,
        "parameters": config.parameters,
        "layers": config.layers,
        "hidden": config.hidden,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "feed_forward": config.feed_forward,
        "vocabulary": config.vocabulary,
        "context": config.context,
        "tied_embeddings": config.tied,
        "stored_as": checkpoint.kinds(),
        "chat_template": bool(checkpoint.template),
    }


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} × {count}" for name, count in value.items())
    return str(value)
