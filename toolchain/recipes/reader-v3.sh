#!/bin/sh
# Makes reader-v3 in build/, from a checkout with the data beside it: reader-v2 is trained on over a mixture of domains
# and of sentences that answer, with all four outputs, then averaged with what it was, 7 : 3. More parts do the same
# again over other rows. A step that is done is not done again, a training that was interrupted or killed goes on from
# its last state: give the same command again.
#
#   nohup nice -n 19 toolchain/recipes/reader-v3.sh [PARTS] >> build/reader-v3.log 2>&1 &
#   toolchain/recipes/reader-v3.sh status        # rows learnt from, rows a second, held-out figures
set -eu
models=${SHARDQA_MODELS:-.venv/bin/shardqa-models}
recipes=toolchain/recipes
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"

if [ "${1:-}" = status ]; then
    tail -n 1 build/reader-v3.log
    for work in build/reader-v3-part-*.work; do "$models" curve "$work"; done
    exit
fi

made() { [ -e "build/$1" ] || { shift; echo "shardqa-models $*"; "$models" "$@"; }; }

mkdir -p build
exec 9> build/reader-v3.lock
flock -n 9 || { echo "reader-v3 is being trained already; see reader-v3.sh status" >&2; exit 1; }
before=reader-v3-0
made "$before" dequantize models/reader-v2-int8 --out "build/$before"
for part in $(seq 1 "${1:-1}"); do
    mixture=reader-v3-mixture-$part learnt=reader-v3-part-$part now=reader-v3-$part
    made "$mixture" mix $recipes/mixtures/reader-v3.toml --seed "$part" --out "build/$mixture"
    made "$learnt" train qa --recipe $recipes/reader-v3.toml --start "build/$before" --seed "$part" \
        --data "build/$mixture/train.json.gz" --data "build/$mixture/train.jsonl.gz" --out "build/$learnt"
    made "$now" average "build/$before" "build/$learnt" --share 0.3 --share 0.7 --out "build/$now"
    made "$now-int8" quantize "build/$now" --out "build/$now-int8"
    before=$now
done
