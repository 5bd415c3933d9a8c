"""Suite `decode-small`: one token of a small real model on the GPU: `graph-token` is one launch an
operation in a CUDA graph, `token-kernel` one launch a token.

All sides hold token and position on the device and run ahead without reading either; what is
timed is a stretch of tokens from the same position, divided by their number.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from warploom.bench import machine
from warploom.bench.case import Context
from warploom.bench.measure import alternate, seconds, summary
from warploom.bench.record import Row
from warploom.bench.stream_read import best_read_rate
from warploom.engine import load
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.model import Model
from warploom.engine.pull import find
from warploom.engine.reference import forward
from warploom.engine.ticker import Ticker
from warploom.engine.weights import Weights, load_weights

DEVICE = "gpu"
LIMIT_S = 480.0
CONTEXT = 1024
PROMPT, STRETCH, ROUNDS = 256, 64, 15
CHECKED = 24
# Between two correct bf16 computations of this model lie errors of about a hundredth.
TOLERANCE = 0.06


MODEL = "smollm2-135m"
KERNELS = {"graph-token": "unfused", "token-kernel": "token"}


def cases(device: str) -> list[str]:
    """The rows of the suite."""
    return [f"{MODEL}/{way}" for way in KERNELS]


def prepare(cases: Sequence[str], device: str) -> None:
    """Fetch the model, or say once what it lacks: before anything is measured."""
    if cases:
        with Ticker(sys.stderr) as progress:
            find(MODEL, progress)


def measure(case: str, context: Context) -> Row:
    """One row: milliseconds a token against plain and compiled torch in a CUDA graph."""
    name, way = case.split("/")
    model = _loaded(name, KERNELS[way], context)
    weights = load_weights(open_checkpoint(model.path), "bf16", lambda array: array)
    rivals = _rivals(model, weights)
    runners = {"ours": model.runner}
    if way == "token-kernel":
        runners["unfused"] = _loaded(name, "unfused", context).runner
    drawn = np.random.default_rng(context.seed).integers(0, model.config.vocabulary, PROMPT)
    ids = [int(item) for item in drawn]
    row = Row(case, "ms", "lower", limit="read", rounds=ROUNDS)
    row.config = {"dtype": "bf16", "context": CONTEXT, "first_position": PROMPT}
    truth = forward(model.config, weights, ids[:CHECKED], last=1)[0]
    row.error = _error(model.logits(ids[:CHECKED], last=1)[0], truth)
    errors = {name: _rival_error(rival, ids, truth) for name, rival in rivals.items()}
    row.rival_error = min(errors.values())
    if row.error > TOLERANCE:
        row.status, row.note = "wrong", f"logits off by {row.error:.3g} of their norm"
        return row
    if bad := [name for name, error in errors.items() if error > TOLERANCE]:
        row.status, row.note = "rival_failed", f"{bad[0]}: logits off by {errors[bad[0]]:.3g}"
        return row
    samples = alternate(_contestants(runners, rivals, ids), ROUNDS)
    row.clock_mhz = machine.clock_mhz()
    row.ours, row.spread = summary(samples.pop("ours"))
    row.rivals = {name: summary(values)[0] for name, values in samples.items()}
    moved = _bytes(model)
    rate = best_read_rate(moved, ROUNDS)
    context.limits["read"] = {"value": round(rate / 1e12, 3), "unit": "TB/s"}
    row.of_limit = round(moved / rate * 1e3 / row.ours, 4)
    row.extra = {"bytes": moved, "launches": model.runner.launches_a_token, "graphs": 1}
    return row


def _loaded(name: str, kernels: str, context: Context) -> Model:
    return load(name, device=context.device, dtype="bf16", context=CONTEXT, kernels=kernels)


def _rivals(model: Model, weights: Weights) -> dict[str, Any]:
    """Torch decoders, captured. Torch is loaded here, so that listing the cases needs none."""
    rival = importlib.import_module("warploom.bench.rivals.torch_decoder")
    made = {
        name: rival.TorchDecoder(model.config, weights, CONTEXT, compiled)
        for name, compiled in (("torch_graph", False), ("torch_compile_graph", True))
    }
    for decoder in made.values():
        decoder.capture()
    return made


def _contestants(runners: dict[str, Any], rivals: dict[str, Any], ids: list[int]) -> dict[str, Any]:
    """Functions that run a stretch from position PROMPT on and return milliseconds a token."""

    def stretch(feed: Any, step: Any, wait: Any) -> float:
        feed()
        step()  # the first token after a prompt may still have to be captured
        wait()

        def run() -> None:
            for _ in range(STRETCH):
                step()
            wait()

        return 1e3 * seconds(run) / STRETCH

    found = {}
    for name, runner in runners.items():
        found[name] = lambda runner=runner: stretch(
            lambda: runner.feed(ids), runner.advance_unseen, runner.synchronise
        )
    for name, rival in rivals.items():
        found[name] = lambda rival=rival: stretch(lambda: rival.feed(ids), rival.step, rival.wait)
    return found


def _bytes(model: Model) -> int:
    """What one token must read: each weight once, and the keys and values before it."""
    c = model.config
    cache = 2 * c.layers * c.kv_size * (PROMPT + STRETCH // 2)
    table = 0 if c.tied else c.vocabulary * c.hidden
    return (c.parameters - table + cache) * np.dtype(ml_dtypes.bfloat16).itemsize


def _error(found: np.ndarray, truth: np.ndarray) -> float:
    """Distance of logits from the float32 computation over the same weights, of its norm."""
    return float(np.linalg.norm(found.astype(np.float64) - truth) / np.linalg.norm(truth))


def _rival_error(rival: Any, ids: list[int], truth: np.ndarray) -> float:
    rival.feed(ids[:CHECKED])
    return _error(rival.logits.cpu().numpy(), truth)
