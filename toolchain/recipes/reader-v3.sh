#!/bin/sh
# Makes reader-v3 in build/, from a checkout with the data beside it: reader-v2 is trained on over a mixture of domains
# and of sentences that answer, with all four outputs. A step that is done is not done again, a training that was
# interrupted or killed goes on from its last state: give the same command again.
#
#   nohup nice -n 19 toolchain/recipes/reader-v3.sh >> build/reader-v3.log 2>&1 &
#   toolchain/recipes/reader-v3.sh status        # rows learnt from, rows a second, held-out figures
set -eu
models=${SHARDQA_MODELS:-.venv/bin/shardqa-models}
recipes=toolchain/recipes
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

if [ "${1:-}" = status ]; then
    tail -n 1 build/reader-v3.log
    exec "$models" curve build/reader-v3.work
fi

made() { [ -e "build/$1" ] || { shift; echo "shardqa-models $*"; "$models" "$@"; }; }

mkdir -p build
exec 9> build/reader-v3.lock
flock -n 9 || { echo "reader-v3 is being trained already; see reader-v3.sh status" >&2; exit 1; }
made reader-v3-0 dequantize models/reader-v2-int8 --out build/reader-v3-0
made reader-v3-mixture mix $recipes/mixtures/reader-v3.toml --out build/reader-v3-mixture
made reader-v3 train qa --recipe $recipes/reader-v3.toml --out build/reader-v3
made reader-v3-int8 quantize build/reader-v3 --out build/reader-v3-int8
