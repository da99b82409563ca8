"""The ladder: the known steps of making BERT cheap on CPUs, climbed on this machine in one run."""
