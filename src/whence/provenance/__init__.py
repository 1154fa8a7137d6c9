"""Why rows are there: derivations, proofs, and the questions that they answer."""
