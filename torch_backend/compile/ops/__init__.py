"""What is known of a graph's ops and tensors, for all phases."""
