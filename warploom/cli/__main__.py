"""Entry of the command line: finds the verb, runs it, turns errors into text and exit codes.

Knows no verb's options. Results go to stdout, everything else to stderr.
"""

import argparse
import difflib
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from warploom.base.errors import CheckError, Error
from warploom.cli.verbs import FIRST_STEPS, INSTEAD, INTERRUPTED, NO, UNUSABLE, VERBS, Verb, find


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 fine, 1 the answer is no, 2 unusable, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    verb = find(words[0]) if words else None
    if verb is None:
        return _without_verb(words)
    try:
        code = _run(verb, words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has left (`warploom … | head`): nothing more to say to it.
        _drop_stdout()
        return 128 + getattr(signal, "SIGPIPE", 13)
    except Error as error:
        print(error, file=sys.stderr)
        return NO if isinstance(error, CheckError) else UNUSABLE
    except OSError as error:
        # A full disk behind stdout, mostly: the answer is lost, which no traceback explains.
        print(f"warploom {verb.name}: {error}", file=sys.stderr)
        _drop_stdout()
        return UNUSABLE
    return code


def _drop_stdout() -> None:
    """Send what stdout still holds nowhere, so that the end of the process does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(verb: Verb, words: list[str]) -> int:
    """Parse the words of one verb and run it."""
    parser = _parser()
    commands = parser.add_subparsers(dest="verb", prog="warploom", required=True)
    module = verb.load()
    module.add_parser(commands)
    try:
        options = parser.parse_args(words)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else UNUSABLE
    return module.run(options)


def _without_verb(words: list[str]) -> int:
    """`warploom`, `warploom --help`, `warploom --version`, or a word that is no verb."""
    parser = _parser()
    if words and not words[0].startswith("-"):
        near = difflib.get_close_matches(words[0], [verb.name for verb in VERBS], n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        hint = f"; {INSTEAD[words[0]]}" if words[0] in INSTEAD else hint
        print(f"warploom: there is no verb `{words[0]}`{hint}", file=sys.stderr)
        print("verbs: " + " ".join(verb.name for verb in VERBS), file=sys.stderr)
        return UNUSABLE
    try:
        parser.parse_args(words)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else UNUSABLE
    parser.print_help(sys.stderr)
    return UNUSABLE


def _parser() -> argparse.ArgumentParser:
    """The parser above the verbs."""
    width = max(len(verb.name) for verb in VERBS)
    table = "\n".join(f"  {verb.name:{width}}  {verb.summary}" for verb in VERBS)
    parser = argparse.ArgumentParser(
        prog="warploom",
        usage="warploom VERB …",
        description="Kernels for GPUs in Python, a machine to check them on, and an engine.",
        epilog=f"verbs (`warploom VERB --help` for its options):\n{table}\n\n{FIRST_STEPS}\n\n"
        "exit codes: 0 fine, 1 the answer is no, 2 could not run or wrong usage, 130 interrupted",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"warploom {_version()}")
    return parser


def _version() -> str:
    """The installed version; a checkout that is not installed has none."""
    try:
        return version("warploom")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
