# Shared by the scripts beside it: where the project is, and how it is configured and built.
# shellcheck shell=bash

repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# On standard error, with the seconds since the script began.
say() { printf '%s [%d s]: %s\n' "${0##*/}" "$SECONDS" "$*" >&2; }

die() {
  local status=$1
  shift
  say "$*"
  exit "$status"
}

# build PRESET TARGET...: configures build/PRESET and builds the targets. Silent unless something
# fails; on a terminal, one line of progress. Everything goes to standard error.
build() {
  local preset=$1
  shift
  local directory=$repository/build/$preset log=$repository/build/$preset.configure.log
  local launcher=() verbosity=(--quiet)
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_BASEDIR=$repository
  fi
  [[ -t 2 ]] && verbosity=()
  mkdir -p "$repository/build"
  say "building $* in ${directory#"$repository"/}"
  if ! (cd -- "$repository" && cmake --preset "$preset" "${launcher[@]}") >"$log" 2>&1; then
    cat -- "$log" >&2
    die 1 "configuring failed"
  fi
  cmake --build "$directory" --target "$@" -- "${verbosity[@]}" >&2 || die 1 "building failed"
}
