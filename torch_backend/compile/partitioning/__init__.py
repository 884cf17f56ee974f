"""Which ops of a graph regions take."""
