"""KERNEL on the command line: `FILE.py:kernel` or `package.module:kernel`, with `@name` for an
example. Finds the object; knows no verb."""

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from warploom.base.errors import Error, error
from warploom.runtime.jit import Kernel
from warploom.runtime.launch import Call

HELP = "FILE.py:kernel or package.module:kernel, with @name for one of its examples"
_HINT = "KERNEL is FILE.py:kernel or package.module:kernel, with @name for one example"


@dataclass(frozen=True)
class Found:
    """A kernel and the name of the example that was asked for ("" for the first one)."""

    kernel: Kernel
    example: str

    @property
    def title(self) -> str:
        """Name and example, for people."""
        return f"{self.kernel.name}@{self.example or next(iter(self.kernel.examples), '')}"

    def call(self, device: str) -> Call:
        """The example's call with data on a device; raises LaunchError H025."""
        return self.kernel.example_call(self.example, device)


def find(word: str) -> Found:
    """The kernel that a word of the command line means; raises LaunchError H026."""
    path, _, example = word.partition("@")
    # Windows has a colon in C:\…; the kernel's name holds no separator.
    place, colon, name = path.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        place, name = path, ""
    module = _module(place)
    kernels = {k: v for k, v in vars(module).items() if isinstance(v, Kernel)}
    if not name and len(kernels) == 1:
        return Found(next(iter(kernels.values())), example)
    names = ", ".join(kernels) or "none"
    if not name:
        text = f"`{word}` does not name a kernel"
        raise error("H026", text, notes=(f"kernels of {place}: {names}",), hint=_HINT)
    if name not in kernels:
        what = "is no kernel" if hasattr(module, name) else "does not exist"
        notes = (f"kernels of {place}: {names}",)
        raise error("H026", f"`{name}` of {place} {what}", notes=notes, hint=_HINT)
    return Found(kernels[name], example)


def find_examples(word: str) -> list[Found]:
    """All examples that a word means: of one kernel, of one example of it (`@name`), or of every
    kernel in a file or module; raises LaunchError H026."""
    path, _, example = word.partition("@")
    _, colon, name = path.rpartition(":")
    if example or (colon and "/" not in name and "\\" not in name):
        one = find(word)
        names = [one.example] if one.example else list(one.kernel.examples) or [""]
        return [Found(one.kernel, name) for name in names]
    kernels = [v for v in vars(_module(path)).values() if isinstance(v, Kernel)]
    found = [Found(kernel, name) for kernel in kernels for name in kernel.examples]
    if not found:
        raise error("H026", f"{path} has no kernel with an example", hint=_HINT)
    return found


def _module(place: str) -> ModuleType:
    if place.endswith(".py") or os.sep in place:
        return _from_file(Path(place))
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", place):
        raise error("H026", f"`{place}` is no file and no module", hint=_HINT)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except Error:
        raise
    except ModuleNotFoundError as why:
        raise error("H026", f"there is no module `{place}` ({why})", hint=_HINT) from why
    except (Exception, SystemExit) as why:
        raise _not_importable(place, why) from why


def _from_file(path: Path) -> ModuleType:
    """The module in a file, with its folder on the path, as if it were run."""
    with contextlib.suppress(OSError, RuntimeError):  # links in a circle
        path = path.resolve()
    if not path.is_file():
        raise error("H026", f"there is no file {path}", hint=_HINT)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise error("H026", f"{path} is no Python file", hint=_HINT)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as why:
        if before is not None:
            sys.modules[path.stem] = before
        # `sys.exit()` in the module would end the verb in silence; Ctrl-C shall.
        if isinstance(why, Error | KeyboardInterrupt | GeneratorExit):
            raise
        raise _not_importable(str(path), why) from why
    return module


def _not_importable(place: str, why: BaseException) -> Exception:
    """The user's module raised: its own exception and line, without the frames that imported it."""
    if isinstance(why, SyntaxError):
        where = f"{why.filename}:{why.lineno}"
    else:
        last = traceback.extract_tb(why.__traceback__)[-1]
        where = f"{last.filename}:{last.lineno}"
    text = f"{place} cannot be imported: {type(why).__name__}: {why}"
    return error("H026", text, notes=(f"raised at {where}",), hint=f"`python {place}` shows more")
