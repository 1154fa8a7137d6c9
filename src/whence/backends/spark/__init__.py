"""Programs on Spark: DataFrames in and out; tasks that run the local backend inside."""
