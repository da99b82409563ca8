"""A cluster in one file: `file.py` is its form, `dump.py` writes it, `restoring.py` reads it into a cluster."""
