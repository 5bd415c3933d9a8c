"""The hash over the compiler: every source counts; one edited meanwhile counts for nobody else."""

import os
import time
from pathlib import Path

from warploom.runtime.source_digest import compiler_digest, digest_of


def tree(top: Path) -> Path:
    for part in ("ir", "passes"):
        (top / part).mkdir()
        (top / part / "one.py").write_text("x = 1\n")
    return top


def test_every_source_counts(tmp_path: Path) -> None:
    top = tree(tmp_path)
    later = time.time_ns() + 10**9
    first = digest_of(top, later)
    assert digest_of(top, later) == first
    (top / "passes" / "one.py").write_text("x = 2\n")
    second = digest_of(top, later)
    (top / "passes" / "one.py").rename(top / "passes" / "two.py")
    third = digest_of(top, later)
    (top / "passes" / "notes.txt").write_text("not a source")
    assert digest_of(top, later) == third
    (top / "passes" / "table.json").write_text("[]")
    fourth = digest_of(top, later)
    assert len({first, second, third, fourth}) == 4


def test_a_source_edited_after_the_import_gives_a_hash_of_its_own(tmp_path: Path) -> None:
    top = tree(tmp_path)
    imported = time.time_ns()
    os.utime(top / "ir" / "one.py", ns=(imported + 1000, imported + 1000))
    assert digest_of(top, imported) != digest_of(top, imported)
    ahead = imported + 10**12
    os.utime(top / "ir" / "one.py", ns=(ahead, ahead))
    assert digest_of(top, imported) == digest_of(top, imported)


def test_this_process() -> None:
    assert compiler_digest() == compiler_digest()
