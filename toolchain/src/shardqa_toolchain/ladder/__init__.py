"""The ladder: the known steps of making BERT cheap on CPUs, measured on this machine in one run."""
