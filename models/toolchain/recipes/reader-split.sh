#!/bin/sh
# Makes the split reader in build/, from a checkout with the data beside it, in parts: each trains on from what the one
# before wrote, over a mixture drawn anew. A step that is done is not done again, an interrupted training goes on: give
# the same command again.
#
#   nice -n 19 models/toolchain/recipes/reader-split.sh [PARTS]
set -eu
parts=${1:-3}
shardqa=${SHARDQA:-.venv/bin/shardqa}
recipes=models/toolchain/recipes
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

made() { [ -e "build/$1" ] || { shift; echo "shardqa $*"; "$shardqa" "$@"; }; }

made reader-split-0 models dequantize models/reader-v2-int8 --out build/reader-split-0
before=reader-split-0
for part in $(seq 1 "$parts"); do
    mixture=reader-v2-mixture-$part learnt=reader-split-$part
    made "$mixture" models mix $recipes/mixtures/reader-v2.toml --seed "$part" --out "build/$mixture"
    made "$learnt" models distil --recipe $recipes/reader-split.toml --start "build/$before" \
        --data "build/$mixture/train.json.gz" --seed "$part" --out "build/$learnt"
    before=$learnt
done
made "$before-int8" models quantize "build/$before" --out "build/$before-int8"
