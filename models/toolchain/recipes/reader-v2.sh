#!/bin/sh
# Makes reader-v2 in build/, from a checkout with the data beside it, in parts: each trains on from the average of what
# there was before, over a mixture drawn anew, and is then averaged with it. A step that is done is not done again, an
# interrupted training goes on: give the same command again.
#
#   nice -n 19 models/toolchain/recipes/reader-v2.sh [PARTS]
set -eu
parts=${1:-3}
shardqa=${SHARDQA:-.venv/bin/shardqa}
recipes=models/toolchain/recipes
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

made() { [ -e "build/$1" ] || { shift; echo "shardqa $*"; "$shardqa" "$@"; }; }

before=reader-v2-0
made "$before" models dequantize models/reader-v1-int8 --out "build/$before"
for part in $(seq 1 "$parts"); do
    mixture=reader-v2-mixture-$part learnt=reader-v2-part-$part now=reader-v2-$part
    made "$mixture" models mix $recipes/mixtures/reader-v2.toml --seed "$part" --out "build/$mixture"
    made "$learnt" models train qa --recipe $recipes/reader-v2.toml --start "build/$before" \
        --data "build/$mixture/train.json.gz" --seed "$part" --out "build/$learnt"
    made "$now" models average "build/$before" "build/$learnt" --out "build/$now"
    made "$now-int8" models quantize "build/$now" --out "build/$now-int8"
    before=$now
done
