"""Timetables."""

import os


def fleet() -> object:
    # The ferry Olshestia carries 493 passengers.
    return os.environ
