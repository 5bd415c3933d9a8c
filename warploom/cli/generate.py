"""`warploom generate MODEL "prompt"`: the answer on stdout as it comes, what goes on on stderr.

Written on `warploom.engine.load` and nothing below it.
"""

import argparse
import sys
from typing import Any

from warploom.cli import json_file
from warploom.cli.verbs import FINE, INTERRUPTED
from warploom.engine import Generation, Model, load
from warploom.engine.sampler import Sampling, check_count
from warploom.engine.ticker import Ticker

SCHEMA = 1

DESCRIPTION = """Answers a prompt with a language model.

MODEL is a .gguf file, a Hugging Face model folder, a name of `warploom models list` (fetched once),
or ORG/NAME of the local Hugging Face cache. A model with a chat template gets the prompt as a
message of the user."""

EPILOG = """The answer goes to stdout, progress to stderr. Ctrl-C ends the answer where it is
(exit 130).

examples:
  warploom generate smollm2-135m "What is the capital of France?"
  warploom generate model.gguf --raw "Once upon a time" --max-new-tokens 40 --temperature 0.8
  warploom generate smollm2-135m "Hello" --device sim --json -"""


def add_parser(commands: Any) -> None:
    """Add the verb to the command line."""
    parser = commands.add_parser(
        "generate",
        help="answer a prompt with a language model",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="path, name, or ORG/NAME")
    parser.add_argument("prompt", metavar="PROMPT", help="the prompt; `-` reads it from stdin")
    _add_sampling(parser)
    parser.add_argument("--raw", action="store_true", help="leave the chat template out")
    parser.add_argument("--system", metavar="TEXT", help="a system message before the prompt")
    parser.add_argument(
        "--device", metavar="WORD", help="sim, gpu or gpu:N (default: a GPU where there is one)"
    )
    parser.add_argument(
        "--dtype", choices=("f32", "bf16", "f16"), help="default: f32 on sim, bf16 on a GPU"
    )
    parser.add_argument(
        "--kernels",
        choices=("token", "unfused"),
        help="one launch a token, or one an operation (default: token on a GPU where it fits)",
    )
    parser.add_argument(
        "--tokens-per-launch",
        type=int,
        default=1,
        metavar="N",
        help="tokens that one launch computes, at temperature 0 (default 1)",
    )
    parser.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="tokens of prompt and answer (default: the model's)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write one JSON object (- : to stdout instead of the answer)"
    )
    parser.add_argument(
        "--download", action="store_true", help="fetch ORG/NAME with huggingface_hub"
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    """How tokens are picked, and when it ends."""
    parser.add_argument(
        "--max-new-tokens", type=int, default=256, metavar="N", help="at most (default 256)"
    )
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 = best token (default)"
    )
    parser.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="draw among the K best (0: all)"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="draw among the best of sum P (1: all)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default 0)")
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text (repeat)"
    )


def run(args: argparse.Namespace) -> int:
    """Generate; returns the exit code. Raises Error where the model or an option is unusable."""
    # Refused before a model is loaded, which takes seconds.
    Sampling(args.temperature, args.top_k, args.top_p, args.seed)
    check_count(args.max_new_tokens)
    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    with Ticker(sys.stderr) as progress:
        model = load(
            args.model,
            device=args.device,
            dtype=args.dtype,
            context=args.context,
            kernels=args.kernels,
            download=args.download,
            progress=progress,
        )
        if args.kernels is None and model.device != "sim" and model.kernels != "token":
            progress.clear()
            print(f"[{model.why}]", file=sys.stderr)
        generation = model.generate(
            prompt,
            max_new_tokens=args.max_new_tokens,
            temperature=args.temperature,
            top_k=args.top_k,
            top_p=args.top_p,
            seed=args.seed,
            stop=args.stop,
            tokens_per_launch=args.tokens_per_launch,
            raw=args.raw,
            system=args.system,
            progress=progress,
        )
        shown = args.json != "-"
        interrupted = _stream(generation, progress, shown)
    _summary(model, generation)
    if args.json:
        json_file.write(args.json, result(model, generation))
    return INTERRUPTED if interrupted else FINE


def _stream(generation: Generation, progress: Ticker, shown: bool) -> bool:
    """Writes the answer as it comes; returns whether Ctrl-C ended it."""
    written = ""
    try:
        for piece in generation:
            if shown and piece.text:
                progress.clear()
                # First, so that an interrupt inside the write still ends the line.
                written = piece.text
                sys.stdout.write(written)
                sys.stdout.flush()
    except KeyboardInterrupt:
        generation.close()
        return True
    finally:
        progress.clear()
        if written and not written.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.flush()
    return False


def result(model: Model, generation: Generation) -> dict[str, Any]:
    """The object of --json."""
    return {
        "schema": SCHEMA,
        "model": model.name,
        "device": model.device,
        "dtype": model.dtype,
        "prompt_ids": generation.prompt_ids,
        "ids": generation.ids,
        "text": generation.text,
        "finish": generation.finish,
        "seconds": {
            "load": model.load_seconds,
            "prompt": generation.seconds.prompt,
            "token_median": generation.seconds.token_median,
        },
        "tokens_per_launch": generation.tokens_per_launch,
        "kernels": model.kernels,
        "why": model.why,
    }


def _summary(model: Model, generation: Generation) -> None:
    seconds = generation.seconds
    median = seconds.token_median
    speed = f", {median:.3g} s a token ({1 / median:.3g} a second)" if median else ""
    count = f"{len(generation.prompt_ids)} + {len(generation.ids)} tokens"
    print(
        f"[{model.device}, {model.dtype}, {model.kernels}] {count}; "
        f"load {model.load_seconds:.1f} s, prompt {seconds.prompt:.1f} s{speed}; "
        f"{generation.finish}",
        file=sys.stderr,
    )
