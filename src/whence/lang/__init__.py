"""The language: text to checked programs."""

from whence.lang.diagnostics import Diagnostic, ProgramError
from whence.lang.load import load, load_file
from whence.lang.program import Program

__all__ = ["Diagnostic", "Program", "ProgramError", "load", "load_file"]
