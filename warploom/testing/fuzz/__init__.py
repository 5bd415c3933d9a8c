"""Random kernels, seeded, held against NumPy on either device: level 1 as tile IR, level 2 as
source text with roles, pipes and products. `runner` runs them, `warploom fuzz` is its face."""
