"""State in parts: each is kept by a worker of Spark, none of which has all of it."""
