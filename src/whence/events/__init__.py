"""Event programs: what happened to each event, kept in a fraction of the space and rebuilt on demand."""
