"""Packaging: a model as a bundle for serverless platforms."""
