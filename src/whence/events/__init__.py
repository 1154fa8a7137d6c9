"""Event programs: what happened to each event, kept in a fraction of the space and rebuilt on demand."""

from whence.events.answers import difference_text, trees_text
from whence.events.compare import compare_trees
from whence.events.figures import figures_of
from whence.events.keys import equivalence_keys
from whence.events.program import EventProgram, event_program
from whence.events.questions import Questions
from whence.events.store import EventStore

__all__ = [
    "EventProgram",
    "EventStore",
    "Questions",
    "compare_trees",
    "difference_text",
    "equivalence_keys",
    "event_program",
    "figures_of",
    "trees_text",
]
