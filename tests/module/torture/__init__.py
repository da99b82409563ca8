"""`make torture`: random commands, frames of a hostile worker, damaged dumps and files against a master, its replica
and its append only file, under sanitizers. `python -m tests.module.torture --minutes 5`; the module of
SHARDQA_MODULE, with a sanitizer in SHARDQA_PRELOAD (see servers.py).

A round is one fuzzer with one seed, so a line `fuzzer seed` says all that is needed to have it again; what one finds
becomes a test of its own in test_regressions.py. After every round master and replica hold the same, and the
master holds it still when it has read its append only file again.

pair.py is what is attacked, rounds.py the rounds and their report, the others a fuzzer each. worker.py is the worker
of both nodes.
"""
