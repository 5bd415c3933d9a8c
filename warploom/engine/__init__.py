"""Runs language models with Warploom's kernels, on the simulator and on a GPU.

from warploom.engine import load
model = load("smollm2-135m")
for piece in model.generate("What is the capital of France?"):
    print(piece.text, end="")
"""

from warploom.engine.generation import Generation, Piece
from warploom.engine.model import Model, load

__all__ = ["Generation", "Model", "Piece", "load"]
