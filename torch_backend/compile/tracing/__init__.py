"""From what the host calls with to a graph of ATen ops."""
