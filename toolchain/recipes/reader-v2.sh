#!/bin/sh
# Makes reader-v2 in build/, from a checkout with the data beside it: reader-v1 is trained on over a mixture of domains,
# then averaged with what it was, 7 : 3. More parts would do the same again. A step that is done is not done again, an
# interrupted training goes on: give the same command again. reader-v1 lies in the history:
#
#   git archive 06d92a2 models/reader-v1-int8 | tar -x -C build --strip-components 1
#   nice -n 19 toolchain/recipes/reader-v2.sh [PARTS]
#
# The scores are fitted on the documents held out, five passages a question:
#
#   shardqa-models candidates build/reader-v2-1-int8 --squad ../shared/data/squad/train-v1.1.json.gz \
#       --squad ../shared/data/squad/train-v2.0-unanswerable.json.gz --held-out 0.02 --limit 400 --out build/squad.jsonl
#   shardqa-models candidates build/reader-v2-1-int8 --domain build/reader-v2-mixture-1/held-out/qed-nq.json.gz \
#       --limit 400 --out build/qed-nq.jsonl        # and so on, a file a domain
#   shardqa-models calibrate build/reader-v2-1-int8 --candidates build/squad.jsonl --candidates build/qed-nq.jsonl ...
set -eu
parts=${1:-1}
models=${SHARDQA_MODELS:-.venv/bin/shardqa-models}
recipes=toolchain/recipes
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

made() { [ -e "build/$1" ] || { shift; echo "shardqa-models $*"; "$models" "$@"; }; }

before=reader-v2-0
made "$before" dequantize build/reader-v1-int8 --out "build/$before"
for part in $(seq 1 "$parts"); do
    mixture=reader-v2-mixture-$part learnt=reader-v2-part-$part now=reader-v2-$part
    made "$mixture" mix $recipes/mixtures/reader-v2.toml --seed "$part" --out "build/$mixture"
    made "$learnt" train qa --recipe $recipes/reader-v2.toml --start "build/$before" \
        --data "build/$mixture/train.json.gz" --seed "$part" --out "build/$learnt"
    made "$now" average "build/$before" "build/$learnt" --share 0.3 --share 0.7 --out "build/$now"
    made "$now-int8" quantize "build/$now" --out "build/$now-int8"
    before=$now
done
