"""`warploom cache`: where compiled kernels lie, which there are, why one was compiled again."""

import argparse
import json
import time
from typing import Any

from warploom.cli import json_file, kernel_name
from warploom.cli.verbs import FINE, NO
from warploom.runtime import cache, compile
from warploom.runtime.arrays import SIM

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "cache",
        description="List, explain and clear compiled kernels.",
        epilog="The folder is WARPLOOM_CACHE, by default in the user's cache folder.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("info", "the folder, its size and whether it can be written"),
        ("list", "the entries"),
        ("clear", "remove all entries"),
    ):
        action = actions.add_parser(name, help=text)
        if name != "clear":
            action.add_argument("--json", metavar="FILE", help=json_file.HELP)
    explain = actions.add_parser("explain", help="which field of the key differs from an entry")
    explain.add_argument("kernel", metavar="KERNEL", help=kernel_name.HELP)


def run(options: argparse.Namespace) -> int:
    """Run one action; returns the exit code."""
    store = compile.disk()
    if options.action == "clear":
        print(f"removed {store.clear()} entries")
        return FINE
    if options.action == "explain":
        return _explain(store, options.kernel)
    if options.action == "list":
        return _list(store, options.json)
    return _info(store, options.json)


def _info(store: cache.DiskCache, target: str | None) -> int:
    entries = list(store.entries())
    facts = {
        "schema": SCHEMA,
        "folder": str(store.folder) if store.folder else None,
        "entries": len(entries),
        "bytes": sum(e.bytes for e in entries),
        "writable": store.is_writable(),
    }
    if target:
        json_file.write(target, facts)
    if target != "-":
        print(f"folder   {facts['folder'] or 'none: there is no home folder'}")
        print(f"entries  {facts['entries']}, {facts['bytes'] / 1e6:.1f} MB")
        print(f"writable {'yes' if facts['writable'] else 'no: kernels stay in memory'}")
    return FINE


def _list(store: cache.DiskCache, target: str | None) -> int:
    rows = []
    for entry in store.entries():
        row: dict[str, Any] = {"kind": entry.kind, "key": entry.key, "bytes": entry.bytes}
        row["made"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.made))
        if entry.kind == cache.SOURCE and (fields := _fields(store, entry.key)):
            row["kernel"], row["target"] = fields.get("kernel", ""), fields.get("target", "")
        rows.append(row)
    if target:
        json_file.write(target, {"schema": SCHEMA, "entries": rows})
    if target != "-":
        for row in rows:
            words = (row["kind"], row["key"][:16], f"{row['bytes']:>9}", row["made"])
            print(*words, row.get("kernel", ""), row.get("target", ""))
    return FINE


def _fields(store: cache.DiskCache, key: str) -> dict[str, str]:
    files = store.load(cache.SOURCE, key)
    try:
        return json.loads(files[compile.ENTRY])["fields"] if files else {}
    except (KeyError, ValueError):
        return {}


def _explain(store: cache.DiskCache, word: str) -> int:
    """Compare the key of a kernel's example with the nearest entry of the same kernel."""
    found = kernel_name.find(word)
    call = found.call(SIM)
    request = call.request
    now = compile.key_fields(request, compile.targets.DEFAULT)
    key = compile.source_key(now)
    stored = [(e.key, _fields(store, e.key)) for e in store.entries() if e.kind == cache.SOURCE]
    stored = [(k, f) for k, f in stored if f.get("kernel") == request.name]
    if any(k == key for k, _ in stored):
        print(f"{found.title}: in the cache ({key[:16]})")
        return FINE
    if not stored:
        print(f"{found.title}: not in the cache, and no other variant of it is")
        return NO
    nearest, fields = min(stored, key=lambda pair: len(_differences(now, pair[1])))
    print(f"{found.title}: not in the cache; the nearest entry is {nearest[:16]}, which differs in")
    for name in _differences(now, fields):
        print(f"  {name}: {fields.get(name, '(absent)')} → {now.get(name, '(absent)')}")
    return NO


def _differences(now: dict[str, str], then: dict[str, str]) -> list[str]:
    return sorted(n for n in now.keys() | then.keys() if now.get(n) != then.get(n))
