"""The verbs of the command line in one table, and how one of them is loaded.

A verb's module has `add_parser(subparsers)` and `run(args) -> int`; it is imported only when the
verb is used, so that `--help` and a wrong word answer at once.
"""

import importlib
from dataclasses import dataclass
from types import ModuleType

# Exit codes, everywhere the same.
FINE, NO, UNUSABLE, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class Verb:
    """A word of the command line, its module in `warploom.cli` and what it does."""

    name: str
    summary: str

    def load(self) -> ModuleType:
        """The module of the verb."""
        return importlib.import_module(f"warploom.cli.{self.name}")


VERBS = (
    Verb("generate", "answer a prompt with a language model"),
    Verb("models", "list, pull, show and remove models"),
    Verb("run", "run a kernel's example, on the simulator or a GPU"),
    Verb("show", "print a kernel at one of its levels: tile, roles, machine, cuda, ptx, sass"),
    Verb("explain", "explain a kernel, an operation or an error code"),
    Verb("check", "check the order of a kernel's examples on the simulator, on many schedules"),
    Verb("fuzz", "run random kernels and hold what they give against NumPy"),
    Verb("trace", "tell what the roles of a kernel did, when, and what they waited for"),
    Verb("selftest", "examine the checker: hazards, planted faults, exploration, random kernels"),
    Verb("bench", "measure a suite, or judge result files by the bars"),
    Verb("hw", "measure what this GPU can do at most"),
    Verb("doctor", "say what this machine can run, and what to install"),
    Verb("cache", "list, explain and clear compiled kernels"),
)

# Words that are tried for a verb, and what does what they mean.
INSTEAD = {
    "compile": "`warploom show KERNEL --level cuda` (or ptx, sass) compiles without a GPU",
    "profile": "`warploom trace KERNEL` tells what the roles did, `warploom bench` measures suites",
    "debug": "`warploom run KERNEL --break FILE:LINE` stops before a line",
    "chat": '`warploom generate MODEL "a prompt"` answers',
    "list": "`warploom models list` and `warploom cache list` list what there is",
    "version": "`warploom --version`",
}

FIRST_STEPS = """\
first steps (KERNEL is FILE.py:kernel or package.module:kernel, with @name for one example):
  warploom doctor
  warploom generate smollm2-135m "What is the capital of France?"
  warploom run examples/02_softmax.py:softmax --checked
  warploom explain wl.load"""


def find(name: str) -> Verb | None:
    """The verb of this name."""
    return next((verb for verb in VERBS if verb.name == name), None)
