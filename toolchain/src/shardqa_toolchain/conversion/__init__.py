"""Conversion: from a checkpoint to the network that is served, and the check that it still answers the same."""
