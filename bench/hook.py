"""A cached GET through the hook against a plain GET: same connection, same value, interleaved. Prints p50s and ratio.

The floor of both is one round trip over loopback; the hook adds a command filter and a module command.
"""

from common import percentiles, seconds_of, temporary_cluster
from redis import Redis

from shardqa import keys, machine

ROUNDS = 20_000  # of each kind, after as many tenths to warm up
VALUE = b'{"spans": "' + b"x" * 2_000 + b'"}'  # about as long as a shard's answer


def main() -> None:
    with temporary_cluster(shards=1) as cluster, Redis(port=cluster.state.port) as client:
        hook_key, plain = keys.answer("bench", "06S", 1, "m", 5, "who"), "plain:bench"
        client.set(hook_key, VALUE)
        client.set(plain, VALUE)
        times: dict[str, list[float]] = {hook_key: [], plain: []}
        for i in range(-ROUNDS // 10, ROUNDS):
            for key in (hook_key, plain) if i % 2 else (plain, hook_key):
                seconds = seconds_of(lambda key=key: client.get(key))
                if i >= 0:
                    times[key].append(seconds)
        calls = client.info("commandstats")
        assert "cmdstat_shardqa.get" in calls, "the hook did not run: the answer function is not registered"
    ratio = sorted(times[hook_key])[ROUNDS // 2] / sorted(times[plain])[ROUNDS // 2]
    print(f"cached GET, {ROUNDS:,} each, {len(VALUE):,} bytes, one connection, {machine.label()}")
    print(f"  plain GET          {percentiles(times[plain])}")
    print(f"  through the hook   {percentiles(times[hook_key])}")
    print(f"  p50 ratio          {ratio:.2f}x (wanted <= 1.5x)")


if __name__ == "__main__":
    main()
