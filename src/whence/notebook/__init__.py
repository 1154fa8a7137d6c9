"""Whence in notebooks: `%load_ext whence` brings `%%whence` cells and `%whence` lines."""

from whence.notebook.cells import Cells, load_ipython_extension

__all__ = ["Cells", "load_ipython_extension"]
