"""Training: networks in torch, from question sets to checkpoints."""
