"""Writes `tokens.json`: what transformers, de-quantised to float32, says to six prompts.

Run by hand in an environment with torch, transformers and gguf; knows nothing of warploom, so
that the two sides of the comparison share no code:

    python tests/golden/smollm2/make.py PATH/SmolLM2-135M-Instruct.Q4_1.gguf
"""

import argparse
import hashlib
import json
import platform
import statistics
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

PROMPTS = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Tell me a short story about a fox.",
    "What is photosynthesis?",
    "Name the planets of the solar system.",
    "What is gravity?",
)
# Texts whose splitting into tokens goes wrong first when a pre-tokenizer is not quite right. No
# digits other than 0-9: transformers does not know the split `smollm` and takes that of GPT-2.
TEXTS = (
    "",
    " ",
    "   three spaces",
    "tabs\tand\nnewlines\n\n  mixed  \r\n",
    "It's we're I'LL they'd don't",
    "1234567 3.14159 1e-5",
    "naïve café résumé Ångström",
    "日本語のテキスト と 한국어",
    "emoji 🙂👩‍👩‍👧‍👦🇫🇷",
    "def f(x):\n    return x**2  # comment\n",
    "<|im_start|>user\nhi<|im_end|>\n",
    "<|im_start|> <|im_start |> <|endoftext|>x",
    "a\u0301 combining, \u200bzero width, \u00a0nbsp",
    "CamelCaseWords and snake_case_words and ALLCAPS",
)
MAX_NEW = 32
END = 2
SMALLEST_GAP = 0.02


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load(path: Path, dtype: torch.dtype) -> torch.nn.Module:
    model = AutoModelForCausalLM.from_pretrained(
        str(path.parent),
        gguf_file=path.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=dtype,
    )
    return model.eval()


def greedy(model: torch.nn.Module, prompt_ids: list[int]) -> tuple[list[int], float]:
    """The continuation, and the smallest distance between the best and the second-best logit."""
    ids, gap = list(prompt_ids), float("inf")
    while len(ids) - len(prompt_ids) < MAX_NEW:
        best = model(torch.tensor([ids])).logits[0, -1].float().topk(2)
        gap = min(gap, float(best.values[0] - best.values[1]))
        ids.append(int(best.indices[0]))
        if ids[-1] == END:
            break
    return ids[len(prompt_ids) :], gap


def teacher_forced(model: torch.nn.Module, row: dict) -> torch.Tensor:
    """Logits of every position that predicts a token of the continuation: [tokens, vocabulary]."""
    ids = torch.tensor([row["prompt_ids"] + row["ids"]])
    return model(ids).logits[0, len(row["prompt_ids"]) - 1 : -1].float()


def bf16_errors(path: Path, rows: list[dict]) -> tuple[list[float], list[dict]]:
    """Relative errors of transformers in bf16 against float32 with weights rounded to bf16."""
    reference = load(path, torch.bfloat16).float()
    wanted = [teacher_forced(reference, row) for row in rows]
    anchors = []
    for logits in wanted:
        best = logits[0].topk(8)
        anchors.append({"ids": best.indices.tolist(), "logits": best.values.tolist()})
    rival = load(path, torch.bfloat16)
    errors: list[float] = []
    for row, logits in zip(rows, wanted, strict=True):
        got = teacher_forced(rival, row)
        errors += ((got - logits).norm(dim=-1) / logits.norm(dim=-1)).tolist()
    return errors, anchors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the GGUF file")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("tokens.json"))
    options = parser.parse_args()
    path: Path = options.model.resolve()
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    rows = []
    with torch.no_grad():
        model = load(path, torch.float32)
        for prompt in PROMPTS:
            chat = [{"role": "user", "content": prompt}]
            text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
            prompt_ids = tokenizer.encode(text, add_special_tokens=False)
            ids, gap = greedy(model, prompt_ids)
            if gap < SMALLEST_GAP:
                print(f"refused: {prompt!r} has a top-2 gap of {gap:.4f} < {SMALLEST_GAP}")
                return 1
            answer = tokenizer.decode(ids, skip_special_tokens=True)
            rows.append({"prompt": prompt, "prompt_ids": prompt_ids, "ids": ids, "text": answer})
            rows[-1]["gap"] = round(gap, 5)
            print(f"{prompt!r}: gap {gap:.4f}, {answer!r}", file=sys.stderr)
        del model
        errors, anchors = bf16_errors(path, rows)
    for row, anchor in zip(rows, anchors, strict=True):
        row["bf16_weights_first_top8"] = anchor
    result = {
        "schema": 1,
        "model": path.name,
        "sha256": sha256(path),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "end": END,
        "max_new_tokens": MAX_NEW,
        "transformers_bf16": {
            "positions": len(errors),
            "median": statistics.median(errors),
            "max": max(errors),
        },
        "rows": rows,
        "tokenizer": [
            {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False)}
            for text in TEXTS
        ],
    }
    options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
