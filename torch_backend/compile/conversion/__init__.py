"""From a region's ops to the layers of a core graph."""
