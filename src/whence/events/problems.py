"""What keeps a program from being an event program, and what is worth knowing of one: a class for each, W08."""

from __future__ import annotations

from whence.lang.diagnostics import Caution, Diagnostic


class NoEvent(Diagnostic):
    code = "W0801"
    message = "{problem}"
    hint = "{advice}"


class NotOneEvent(Diagnostic):
    code = "W0802"
    message = "rule {rule} has {found}; an event rule has exactly one event atom"
    hint = "{advice}"


class DerivedCondition(Diagnostic):
    code = "W0803"
    message = "{relation} is .slow, but rule {rule} derives it"
    hint = "derive it in a program of its own and feed its changes to this one, or take the .slow away"


class NeverReached(Diagnostic):
    code = "W0804"
    message = "no event {event} leads to {relation}, which rule {rule} waits for"
    hint = "have a rule derive {relation} from an event, or take the rule out"


class AnotherPlace(Diagnostic):
    code = "W0805"
    message = "{relation} is looked up at {place}, but the event of rule {rule} is at {at}"
    hint = "all atoms of a body are at the place of the event: send the event there first, by a rule of its own"


class NotInEvents(Diagnostic):
    code = "W0806"
    message = "{what} cannot stand in an event program"
    hint = "{advice}"


class NoPlace(Diagnostic):
    code = "W0807"
    message = "{relation} has no column that could be a place"
    hint = "give it a first column, or mark one with @"


class AllKeys(Caution):
    code = "W0891"
    message = "every attribute of {event} is a key: no two different events share a tree"
    hint = "what decides the way of an event should be fewer attributes than it has"


class MayFork(Caution):
    code = "W0892"
    message = "an event may fork here: {reason}"
    hint = "each way has a tree of its own; nothing is lost"


class MayNotEnd(Caution):
    code = "W0893"
    message = "a run may not end: {cycle}"
    hint = "a hop limit stops it; a counter in the event that a rule tests makes it end by itself"
