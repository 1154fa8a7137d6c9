"""Streaming sources for Spark, in Python: each needs its extra, `whence[postgres]` or `whence[kafka]`."""
