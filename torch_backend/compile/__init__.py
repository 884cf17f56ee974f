"""From a graph of the host's to regions and core graphs."""
