"""The one error of models and scripts."""


class ModelError(Exception):
    """A model that can't be loaded, or a run of it that failed. Its text is an error reply."""
