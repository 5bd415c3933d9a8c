"""Benchmarks: the driver that measures and writes result files, and the bars they are judged by."""
