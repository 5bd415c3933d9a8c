"""Library calls as operators of other frameworks: descriptions, and one module a framework.

`import warploom.interop.torch` makes `torch.ops.warploom.…` of every kernel family that is
imported, before or after it. Nothing here imports a framework by itself.
"""
