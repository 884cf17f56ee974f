"""Whether weights, and what leads to them, are what nets were made from."""
