"""Settings of all tests of the toolchain."""

import os

import hypothesis

# No test depends on how fast the machine is.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch comes: more threads sum in another order
