#!/usr/bin/env bash
# Checks that a tree keeps the rules of the house:
#   - which folder may include which, every include names its folder, no "../"
#   - a third-party header is included in its own folder only, also through another header
#   - file names are unique, no file of code has more than 600 lines, none has unfinished marks
#   - the switch BPT_CUDA is asked in one file
#   - MPI is called in the files alone whose functions the MPI thread runs
#   - tests compare numbers by assert_near() of tests/base/near.h: cmocka's assert_float_equal() passes at NaN
#   - clang-format 14 (if it is there) would change nothing
#
# usage: house_rules.sh [ROOT]     exit status: 0 all rules hold, 1 a rule is broken (printed)
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 1

# folder: folders that its files may include. tests and what they mirror: see may_use() below.
declare -A may_include=(
    [base]="base"
    [scheduler]="scheduler base"
    [storage]="storage base"
    [inner]="inner scheduler base"
    [outer]="outer base"
    [tools]="tools outer inner scheduler storage base"
    [tests]="tests tools outer inner scheduler storage base"
)

# rooms FOLDER ROOM:OTHER,...: folders within a folder, and which of the others in it their files may include, beside
# what the folder may. A file can be a room of its own, as a table of functions that rooms behind it fill in.
rooms() {
    local within=$1 room other
    for room in "${@:2}"; do
        may_include[$within/${room%%:*}]=${may_include[${within%%/*}]}
        for other in ${room%%:*} $(tr , ' ' <<<"${room#*:}"); do
            may_include[$within/${room%%:*}]+=" $within/$other"
        done
        may_include[tests]+=" $within/${room%%:*}"
    done
}

rooms outer comm: data:comm rules: exchange:comm,data,rules placement:comm
rooms storage images: environment: dataset:environment,images writer:dataset,environment,images \
    importers:dataset,environment,images augmentations:images loader:augmentations,dataset,images \
    stage:dataset,environment
rooms inner loops: memory: weights: optimizers: schedules: cpu:loops,memory cuts:cpu layers/layer.h:cuts,loops,weights \
    step:cpu,cuts,layers/layer.h,loops,memory layers:cpu,cuts,layers/layer.h,loops,step,weights \
    models:cuts,layers/layer.h,weights onnx:layers/layer.h,models,weights device.h:models,network \
    network:cuts,device.h,layers/layer.h,loops,memory,models,optimizers,step,weights \
    cuda:device.h,layers/layer.h,loops,memory,models,network,optimizers mixed:cpu,device.h,models,network \
    device.c:cuda,device.h,mixed
may_include[tools]=${may_include[tests]/#tests /}

# Of tools/ bpt_train.c alone may include all rooms of tools/train/.
rooms tools/train chart: exchange: options:exchange data:options run:options \
    job:chart,exchange,options,data,run report:options,job loop:exchange,options,run,job,report replay:exchange,options,data,run \
    check:options,data,run,job bench:options,data,run,job,report
may_include[tools/bpt_train.c]=${may_include[tests]/#tests /}
rooms tools plan:train/exchange,train/job,train/options bpt_plan.c:plan # bpt-plan foretells what bpt-train does by its own rules
for folder in outer storage inner tools/train; do # all of it is in rooms
    may_include[$folder]=""
done

# third-party headers (extended regular expression) and the folder that alone may include them
third_party=(
    '(mpi|mpi-ext)\.h$'                      outer/
    'lmdb\.h$'                               storage/
    'zlib\.h$'                               storage/
    '(turbojpeg|jpeglib|png)\.h$'            storage/images/
    '(google/)?protobuf-c/'                  storage/
    '(oneapi/dnnl/|dnnl)'                    inner/cpu/
    'omp\.h$'                                inner/cpu/
    '(cuda|cudnn|cublas|curand|cufft|nccl)'  inner/cuda/
    '(jansson|jansson_config|yaml|xxhash)\.h$' base/
    'hwloc(\.h$|/)'                          scheduler/
)

max_lines=600
n_broken=0

broken() { # WHERE MESSAGE
    printf '%s: %s\n' "$1" "$2"
    n_broken=$((n_broken + 1))
}

# Every file that belongs to the tree: what git knows or would add; without git, all but builds.
list_files() {
    if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
        git ls-files --cached --others --exclude-standard
    else
        find . \( -path ./build -o -path ./.git -o -path ./.venv \) -prune -o -type f -print |
            sed 's|^\./||'
    fi | sort -u
}

files=() code=()
while IFS= read -r file; do
    [ -f "$file" ] || continue # deleted, not yet committed
    files+=("$file")
    case $file in *.c | *.h | *.cu | *.cuh | *.cpp) code+=("$file") ;; esac
done < <(list_files)
if [ ${#code[@]} -eq 0 ]; then
    echo "house_rules: no sources in $PWD" >&2
    exit 1
fi

# ---- includes ----

# Sets folder to that of the rules above which path $1 lies in: the innermost, or the file where it has rules of its own.
find_folder() {
    folder=$1
    while [[ $folder == */* ]] && [ -z "${may_include[$folder]+is there}" ]; do folder=${folder%/*}; done
}

# @return whether file $1 may use a header that lives in folder $2 (ends with /)
may_use() {
    case $1 in
    "$2"*) return 0 ;;
    tests/bench/* | tests/fuzz/* | tests/cluster/*) return 0 ;;
    "tests/${2%%/*}"/*) return 0 ;; # a test may look behind what it tests
    esac
    return 1
}

# carries["outer/x.h"]="outer/ ": headers that bring a third-party header along, and whose it is.
# Grows until nothing is added: a header that includes a carrier is one.
declare -A carries=()
includes=() # "file line kind target", kind is < or "
pattern='^([^:]+):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*([<"])([^>"]+)[>"]'
while IFS= read -r found; do
    [[ $found =~ $pattern ]] &&
        includes+=("${BASH_REMATCH[1]} ${BASH_REMATCH[2]} ${BASH_REMATCH[3]} ${BASH_REMATCH[4]}")
done < <(grep -HnE '^[[:space:]]*#[[:space:]]*include' -- "${code[@]}")

for include in "${includes[@]}"; do
    read -r file line kind target <<<"$include"
    find_folder "$target"
    target_folder=$folder
    find_folder "$file"
    allowed=${may_include[$folder]-}
    if [[ $target == *../* ]]; then
        broken "$file:$line" "\"$target\": an include names the folder, never \"../\""
    elif [ "$kind" = '"' ]; then
        if [ ! -f "$target" ]; then
            broken "$file:$line" "\"$target\" is no file of the tree (folder/name.h)"
        elif [[ " $allowed " != *" $target_folder "* ]]; then
            broken "$file:$line" "$folder may not include $target_folder ($target)"
        fi
    elif [ "$target_folder" != "$target" ] && [ -n "${may_include[$target_folder]-}" ]; then
        broken "$file:$line" "<$target>: our own headers are included with quotes"
    fi
    for ((i = 0; i < ${#third_party[@]}; i += 2)); do
        [[ $target =~ ^${third_party[i]} ]] || continue
        [ "$kind" = '"' ] && [ -f "$target" ] && continue
        room=${third_party[i + 1]}
        may_use "$file" "$room" || broken "$file:$line" "$target belongs to $room alone"
        [[ $file == *.h || $file == *.cuh ]] && carries[$file]+="$room "
    done
done

grown=1
while [ $grown -eq 1 ]; do
    grown=0
    for include in "${includes[@]}"; do
        read -r file line kind target <<<"$include"
        [[ $file == *.h || $file == *.cuh ]] || continue
        for room in ${carries[$target]-}; do
            [[ " ${carries[$file]-}" == *" $room "* ]] && continue
            carries[$file]+="$room "
            grown=1
        done
    done
done
for include in "${includes[@]}"; do
    read -r file line kind target <<<"$include"
    for room in ${carries[$target]-}; do
        may_use "$file" "$room" ||
            broken "$file:$line" "$target brings along a third-party header of $room"
    done
done

# ---- names, sizes, marks ----

while IFS= read -r name; do
    broken "$name" "more than one file has this name: $(printf '%s\n' "${files[@]}" |
        grep -E "(^|/)${name//./\\.}\$" | tr '\n' ' ')"
done < <(printf '%s\n' "${files[@]}" | grep -E '\.(c|h|cu|cuh|cpp|cmake|sh|py)$' | sed 's|.*/||' |
    sort | uniq -d)

for file in "${code[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le $max_lines ] || broken "$file" "$lines lines, more than $max_lines"
done

# Spelled so that this file does not find itself.
marks='\b(TO''DO|FIX''ME|X''XX|HA''CK)\b'
while IFS= read -r found; do
    broken "${found%:*}" "unfinished mark"
done < <(grep -IHnoE "$marks" -- "${files[@]}" | sed 's/:[^:]*$/:/')

mapfile -t switches < <(grep -lE '^[[:space:]]*#.*\bBPT_CUDA\b' -- "${code[@]}" | grep -v '^tests/')
[ ${#switches[@]} -le 1 ] || broken "${switches[*]}" "BPT_CUDA is asked in more than one file"

# One thread of a rank calls MPI (MPI_THREAD_FUNNELED). Beside calls these files have jobs for it.
mpi_thread='^outer/(comm/(clock_offset|comm|comm_thread|notice|transfers|watch)|placement/link_speed)\.c:'
while IFS= read -r found; do
    broken "${found%:*}" "MPI is called beside the files of the MPI thread"
done < <(grep -HnoE '\bMPI_[A-Z][a-z_]+\(' -- "${code[@]}" | grep -vE "^tests/|$mpi_thread" |
    sed 's/:[^:]*$/:/')

while IFS= read -r found; do
    broken "${found%:*}" "assert_float_equal() passes at NaN: use assert_near()"
done < <(grep -HnoE '\bassert_float_(not_)?equal\(' -- "${code[@]}" | grep -v '^tests/base/near\.h:' |
    sed 's/:[^:]*$/:/')

# A script of tests that gives a function of common.sh another meaning gives it to the others there that call it, too.
shared=tests/tools/common.sh
mapfile -t sourcing < <(printf '%s\n' "${files[@]}" | grep -E '^tests/.*\.sh$' |
    xargs -r grep -lE '^source .*/(common|cluster)\.sh"$' -- 2>/dev/null)
if [ -f $shared ] && [ ${#sourcing[@]} -gt 0 ]; then
    functions=$(sed -nE 's/^([a-z_]+)\(\).*/\1/p' $shared | paste -sd'|')
    while IFS= read -r found; do
        broken "${found%:*}" "$shared has a function of this name: ${found##*:}"
    done < <(grep -HnoE "^($functions)\(\)" -- "${sourcing[@]}" | grep -v "^$shared:")
fi

# ---- layout ----

formatter=${CLANG_FORMAT:-clang-format}
formatted="clang-format 14 is not here: layout not checked"
if "$formatter" --version 2>/dev/null | grep -q 'version 14\.' && [ -f .clang-format ]; then
    formatted="clang-format agrees"
    while IFS= read -r file; do
        broken "$file" "clang-format would change it: clang-format -i $file"
    done < <("$formatter" --dry-run -Werror "${code[@]}" 2>&1 |
        sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error: code should be clang-formatted.*/\1/p' | sort -u)
fi

if [ $n_broken -gt 0 ]; then
    echo "house_rules: $n_broken found"
    exit 1
fi
echo "house_rules: ${#files[@]} files keep the rules; $formatted"
