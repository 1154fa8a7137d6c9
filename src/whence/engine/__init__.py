"""Maintaining views: the epoch algorithms, over the operations a backend offers."""
