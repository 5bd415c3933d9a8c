"""The first hour of a newcomer as one test; `bash tests/first_hour/run.sh` shows its steps."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="the script is for bash")
def test_the_first_hour() -> None:
    script = Path(__file__).with_name("run.sh")
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "in all" in done.stdout
