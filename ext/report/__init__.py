"""Reports that both front doors give."""
