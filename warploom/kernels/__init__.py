"""Kernels written in the language, each beside its formula in NumPy: `warploom.kernels.<family>`.

A family has `kernel.py` (what runs), `reference.py` (what it means) and public calls that check
their arguments and launch. Calls write into arrays that the caller made, read nothing back to the
host, and may be captured into a graph once they have run.
"""
