"""Columns in memory, hash indexes, compiled loops."""
