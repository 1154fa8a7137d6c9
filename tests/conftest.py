"""Hypothesis must not fail a test because the machine is busy."""

from hypothesis import settings

settings.register_profile("whence", deadline=None)
settings.load_profile("whence")
