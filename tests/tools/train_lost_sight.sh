#!/usr/bin/env bash
# What cannot be seen is not taken for missing, and what the user keeps in a run's folder is not the run's: nothing is
# removed, begun anew or overwritten for either.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model

files() { # FOLDER: names and contents of all that is in it, but locks
    (cd "$1" && find . -type l -printf '%p %l\n' | sort &&
        find . -type f ! -name '*lock*' | sort | xargs -d '\n' cksum)
}

unseen() { # END COMMAND...: where paths that end so cannot be looked at
    local end=$1
    shift
    env "LD_PRELOAD=$BPT_HELPERS/liblost_sight.so" "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "BPT_TEST_UNSEEN=$end" "$@"
}

keeps() { # FOLDER STATUS TEXT COMMAND...: it fails, says so, and leaves all as it is
    local folder=$1 status=$2 text=$3
    shift 3
    files "$folder" >before
    run "$status" "$@"
    says "$text"
    files "$folder" >after
    cmp -s before after || die "$folder is not as it was: $(diff before after)"
}

long=("$train" "${common[@]}" --output run --checkpoint-every 10 --checkpoint-keep 3)
run 0 "${long[@]}"

# ---- not seen ----

keeps run 1 'cannot look at run/summary.json: Stale file handle' unseen /summary.json "${long[@]}" --resume auto
rm run/summary.json
keeps run 1 'cannot look at run: Stale file handle' unseen run "${long[@]}" --resume auto
keeps run 1 '/DONE: Stale file handle' unseen /DONE "${long[@]}" --resume auto
keeps run 1 '/DONE: Stale file handle' unseen /DONE "$train" "${common[@]}" --output other --resume run
keeps data 1 'cannot look at data/data.mdb: Stale file handle' \
    unseen /data.mdb "$ingest" glyphs --out data --split more --count 10
keeps data 1 'cannot look at data/data.mdb: Stale file handle' \
    unseen /data.mdb "$ingest" glyphs --out data --split train --count 10 --force
run 0 "$ingest" verify data

if [ "$(id -u)" -ne 0 ]; then # root sees all
    chmod 000 run/config.yaml
    keeps run 1 'cannot open run/config.yaml: Permission denied' "${long[@]}" --resume auto
    chmod 644 run/config.yaml
fi

# ---- a start that fails ----

mv run/checkpoints elsewhere
ln -s ../elsewhere run/checkpoints
mv elsewhere away
keeps run 1 'run/checkpoints is no folder, or a link that leads to none' "${long[@]}" --resume auto
mv away elsewhere
rm run/checkpoints
mv elsewhere run/checkpoints

run 0 "$tune" --model tiny.yaml --batch-size 20 --out tuned.yaml --budget 2
tuned=("${long[@]}" --output tuned --tuned tuned.yaml)
run 0 "${tuned[@]}"
rm tuned/summary.json
too_large() { (ulimit -f 1 && "$@"); } # for config.yaml
keeps tuned 1 'cannot write tuned/config.yaml' too_large "${tuned[@]}" --resume auto
run 0 "${long[@]}" --output tuned --resume auto
[ ! -e tuned/tuned.rank-0.yaml ] || die "a rank that is tuned by nothing keeps what it was tuned by"

# ---- what somebody keeps there ----

run 0 "${long[@]}" --resume auto
mkdir run/checkpoints/best
echo mine >run/checkpoints/best/DONE
echo mine >run/checkpoints/note
echo mine >run/exchange/note
echo of-before >run/checkpoints/step-00000001
run 0 "${long[@]}" --epochs 0.5 --checkpoint-every 0 --force
[ -e run/checkpoints/best ] && [ -e run/checkpoints/note ] && [ -e run/exchange/note ] ||
    die "--force takes what is not the run's"
[ -z "$(ls -d run/checkpoints/step-* 2>/dev/null)" ] || die "--force leaves checkpoints of before"

# Folders that he keeps elsewhere, by links: emptied like others, and still there.
others=(run/checkpoints/best run/checkpoints/note run/exchange/note)
elsewhere() { # STEPS: whether the links are, what he keeps, and checkpoints of these steps alone
    [ -L run/checkpoints ] && [ -L run/exchange ] || die "a link is gone: $(ls -l run)"
    ls "${others[@]}" >/dev/null || die "what is not the run's is gone"
    [ "$(cd disk/checkpoints && echo step-*)" = "$1" ] || die "checkpoints: $(ls disk/checkpoints)"
    [ ! -e disk/exchange/updates.rank-3.jsonl ] || die "the log of a rank of before is still there"
}
mkdir disk && mv run/checkpoints run/exchange disk
ln -s ../disk/checkpoints ../disk/exchange run
run 0 "${long[@]}" --force
touch run/exchange/updates.rank-3.jsonl
newest=run/checkpoints/$(cd run/checkpoints && echo step-* | sed 's/.* //')
keeps run 2 "--force would remove $newest/model.safetensors, which --init-weights names" \
    "${long[@]}" --force --init-weights "$newest/model.safetensors"
keeps run 2 '--force would remove run, which --resume goes on from' "${long[@]}" --force --resume "$newest"
run 0 "${long[@]}" --epochs 1 --checkpoint-every 15 --force
elsewhere step-00000015
run 0 "${long[@]}" --epochs 1 --resume run/checkpoints/step-00000015
rm -r run/summary.json disk/checkpoints/step-*
touch run/exchange/updates.rank-3.jsonl
run 0 "${long[@]}" --epochs 1 --checkpoint-every 15 --resume auto
elsewhere step-00000015
mv disk away
keeps run 1 'run/checkpoints is no folder, or a link that leads to none' "${long[@]}" --force
