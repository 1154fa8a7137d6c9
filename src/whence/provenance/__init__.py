"""Why rows are there: derivations, proofs, and the questions that they answer.

>>> from whence import Session, load
>>> from whence.provenance import whynot
>>> session = Session(load("p(x) :- e(x). .decl e(x:number) .input e .output p"))
>>> whynot(session, "p", (1,)).repairs
(Repair(insertions=(Fact(relation='e', tuple=(1,)),), deletions=()),)
"""

from whence.provenance.attempts import Attempt
from whence.provenance.derivations import CannotExplain, Derivations
from whence.provenance.expand import Bounds, derivation_graph
from whence.provenance.graph import Absence, Aggregated, Derivation, DerivationGraph, Fact
from whence.provenance.how import how
from whence.provenance.parted import PartedDerivations
from whence.provenance.probability import Budget, Probability, probabilities, probability
from whence.provenance.proofs import Proof
from whence.provenance.recorded import RecordedDerivations, recorded_derivations
from whence.provenance.repairs import Effort, Repair
from whence.provenance.responsibility import Contribution, contributions
from whence.provenance.solve import solve_graph
from whence.provenance.whatif import Dependence, rank_dependence, whatif
from whence.provenance.why import Why, graph_of, why
from whence.provenance.whynot import WhyNot, whynot

__all__ = [
    "Absence",
    "Aggregated",
    "Attempt",
    "Bounds",
    "Budget",
    "CannotExplain",
    "Contribution",
    "Dependence",
    "Derivation",
    "DerivationGraph",
    "Derivations",
    "Effort",
    "Fact",
    "PartedDerivations",
    "Probability",
    "Proof",
    "RecordedDerivations",
    "Repair",
    "Why",
    "WhyNot",
    "contributions",
    "derivation_graph",
    "graph_of",
    "how",
    "probabilities",
    "probability",
    "rank_dependence",
    "recorded_derivations",
    "solve_graph",
    "whatif",
    "why",
    "whynot",
]
