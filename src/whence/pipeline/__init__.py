"""Views that run for months: durable state, sinks, and streaming on Spark."""
