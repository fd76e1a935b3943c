# What the scripts of this folder need of a machine with GPUs; sourced by them, with `root` set.
#
# CARRY    folder with unpacked libraries that the machine lacks (.carry/root)
# Puts CUDA's and CARRY's libraries where programs and the build find them. PLAIN_LIBRARY_PATH is what
# LD_LIBRARY_PATH was: for programs that bring their own CUDA, as PyTorch does.
export PLAIN_LIBRARY_PATH=${PLAIN_LIBRARY_PATH-${LD_LIBRARY_PATH:-}}
carry=${CARRY:-$root/.carry/root}
if [ -d "$carry" ]; then
    libraries=$carry/usr/lib/x86_64-linux-gnu
    export PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$carry
    export CMAKE_PREFIX_PATH=$carry/usr
    export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PATH=$PATH:$carry/usr/bin
fi
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib; do
    [ -d "$folder" ] && export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# build_here LOG: attune in ATTUNE_BUILD; the end of LOG and status 1 when that fails.
build_here() {
    { cmake -S "$root" -B "$ATTUNE_BUILD" -DCMAKE_BUILD_TYPE=Release -DATTUNE_TESTS=OFF &&
        cmake --build "$ATTUNE_BUILD" -j"$(nproc)"; } >"$1" 2>&1 && return
    tail -n 30 "$1"
    return 1
}

# start_mps FOLDER: the processes started from now on share GPUs through an MPS server, whose pipes and
# logs are in FOLDER, until stop_mps.
mps_runs=no
start_mps() {
    command -v nvidia-cuda-mps-control >/dev/null || { echo "no nvidia-cuda-mps-control" >&2; exit 1; }
    export CUDA_MPS_PIPE_DIRECTORY=$1/mps CUDA_MPS_LOG_DIRECTORY=$1/mps-log
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    nvidia-cuda-mps-control -d && mps_runs=yes
}
stop_mps() { [ $mps_runs = no ] || echo quit | nvidia-cuda-mps-control >/dev/null 2>&1; }

# What a measurement prints before each part, and what keeps it within its time: `began` is SECONDS at the
# start, `until` the second after which nothing may run.
say() { printf '\n== %4d s  %s\n' $((SECONDS - began)) "$*"; }

# limited SECONDS COMMAND...: never longer than that, nor past `until`.
limited() {
    local left=$((until - (SECONDS - began))) seconds=$1
    shift
    [ "$left" -lt "$seconds" ] && seconds=$left
    if [ "$seconds" -lt 1 ]; then
        echo "no time left for: $*"
        return 124
    fi
    timeout -k 5 "$seconds" "$@"
}
