"""From a call to a running kernel: arguments, compilation, cache, launch, graphs."""
