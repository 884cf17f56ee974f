"""The host's part: what is not in a region, and its steps inside one."""
