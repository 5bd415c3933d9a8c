"""Compiles what a row of suite `decode` launches into caches on disk: python -m
warploom.bench.decode_compile --device gpu token CASE

`token` needs no memory of the GPU: only the classes of arrays count. `unfused`, `compiled`, `plain`
(the kernels of one launch an operation, torch's with its search for configurations and without it)
run one layer.
"""

import argparse
import importlib
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from warploom.bench import decode_models
from warploom.bench.suites import decode
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place, choose
from warploom.engine.runner import Runner
from warploom.engine.token_runner import Packed, arranged, plan_of
from warploom.engine.weights import DTYPES, Weights, moved
from warploom.runtime import compile as compiler
from warploom.runtime import places
from warploom.runtime.variant import target_for

SIM = Place("sim")


class Blank:
    """Arrays that nobody reads or writes: their memory is never touched."""

    def matrix(self, *shape: int, scale: float = 1.0) -> Any:
        """A bf16 array."""
        return np.empty(shape, decode_models.BF16)


def request_of(case: str, blocks_of: Place) -> compiler.Request:
    """What the launch of a row is compiled from, for as many blocks as a device has."""
    name, length, batch = case.split("/")
    config = decode_models.config_of(name, int(length.removeprefix("ctx")))
    weights = decode_models.weights_of(config, Blank(), 0)
    plan = plan_of(config, blocks_of)
    packed = np.empty((plan.total_steps, plan.step_elements), DTYPES["bf16"])
    held = Packed(plan, arranged(weights, packed, SIM))
    model = decode.Held(name, SIM, 0, Blank(), weights, held)
    return decode.launch_of(config, model, int(batch.removeprefix("b")))[1].request


def _one_layer(case: str, place: Place) -> tuple[ModelConfig, Weights]:
    made = importlib.import_module("warploom.bench.rivals.torch_weights")
    random = made.TorchRandom(0, f"cuda:{places.gpu_number(place.name)}")
    name, length, _ = case.split("/")
    config = decode_models.config_of(name, int(length.removeprefix("ctx")))
    config = replace(config, layers=1)
    return config, decode_models.weights_of(config, random, 0)


def unfused(case: str, place: Place) -> None:
    """Launch every kernel that a token of a model takes."""
    config, weights = _one_layer(case, place)
    runner = Runner(config, moved(weights, place.put), place, "bf16", config.context)
    runner.go_on(0, 0)
    runner.advance_unseen()
    runner.synchronise()


def compiled(case: str, place: Place) -> None:
    """Let torch compile a layer, the head, and what is ahead of them."""
    _compiled(case, place, whole=True)


def plain(case: str, place: Place) -> None:
    """The same with torch's own options, and a mask over the cache."""
    _compiled(case, place, whole=False, options={})


def _compiled(case: str, place: Place, whole: bool, options: dict[str, Any] | None = None) -> None:
    config, weights = _one_layer(case, place)
    rival = importlib.import_module("warploom.bench.rivals.torch_decoder")
    number = places.gpu_number(place.name)
    where = f"cuda:{number}"
    made = rival.TorchDecoder(config, weights, config.context, True, where, whole, options)
    made.capture()


def token(case: str, place: Place) -> None:
    """Compile the token kernel."""
    compiler.gpu_image(request_of(case, place), target_for(places.gpu_number(place.name)))


_WHAT = {"token": token, "unfused": unfused, "compiled": compiled, "plain": plain}


def main() -> int:
    """Compile what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=tuple(_WHAT))
    parser.add_argument("case")
    parser.add_argument("--device", required=True)
    options = parser.parse_args()
    _WHAT[options.what](options.case, choose(options.device))
    return 0


if __name__ == "__main__":
    sys.exit(main())
