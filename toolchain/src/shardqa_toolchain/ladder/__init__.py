"""The ladder: what each step from a naive BERT to the shipped reader gains on this machine."""
