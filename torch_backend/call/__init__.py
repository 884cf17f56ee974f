"""What happens at a call of a compiled graph."""
