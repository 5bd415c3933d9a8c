"""From the source of a function to tile-stage IR. Executes nothing, knows no device and no launch.

Entry points, which the runtime uses:

- `source.read(fn) -> SourceFunction`: text and syntax tree; raises CompileError F001-F004.
- `signature.parse_signature(fn) -> Signature` with `.parameters`, a tuple of
  `Parameter(name, kind, dtype, default)`: kind "tensor", "scalar" or "const"; `default is MISSING`
  where there is none.
- `capture.source_key_parts(fn, constants) -> tuple[tuple[str, str], ...]`: (name, text) for the
  source of the function and of all that it reaches, and for each captured value.
- `build.build(fn, params, constants, *, warps, fast_math) -> ir.kernel.Kernel` with
  `params: Sequence[ParamSpec(name, type)]` in call order and `constants: Mapping[str, object]` for
  the rest (a tensor given as None is a constant); raises CompileError with all reports.

`language.function.function` is `wl.function`; a kernel object has `__warploom__ = "kernel"` in its
class and the Python function in `__wrapped__`.
"""
