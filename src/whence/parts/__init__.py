"""Parts that make the views of one program together: what each of them does in a round, and which round comes next.

A *round* is one turn of every part, after which what they told each other is delivered. Who carries rounds out, and what carries
the messages, is somebody else's business.
"""

from whence.parts.course import Course
from whence.parts.member import Member, Report, Turn, next_turn

__all__ = ["Course", "Member", "Report", "Turn", "next_turn"]
