"""Where relational operations run."""
