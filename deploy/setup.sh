#!/usr/bin/env bash
# Gets a machine ready to run Tenure's development commands: checks Node, installs the npm packages
# when they are missing or older than the lock file, and installs etcd and nats-server through apt or
# Homebrew when they are not there. With TENURE_SETUP=test also the servers that only the tests need:
# PostgreSQL, PgBouncer and Redis, and Spin. Does nothing, quickly, when all is present.
#
# Exit codes: 0 ready, 1 a step failed, 3 something is missing that only you can install (the line
# that would do it is printed). Progress goes to stderr, standard output stays empty.
set -euo pipefail

NODE_MAJOR_MIN=20
NODE_MINOR_MIN=19

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PATH:/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"

say() { printf 'setup: %s\n' "$*" >&2; }

missing() {
  say "$1"
  say "$2"
  exit 3
}

# Runs a command silently; its output shows only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if "$@" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
    return 0
  fi
  cat "$log" >&2
  rm -f "$log"
  return 1
}

check_node() {
  local version major minor
  command -v node >/dev/null ||
    missing "Node is not installed; ${NODE_MAJOR_MIN}.${NODE_MINOR_MIN} or later is needed." \
      "Install it from https://nodejs.org (distributions often carry an older one), then run this again."
  version=$(node --version)
  version=${version#v}
  major=${version%%.*}
  minor=${version#*.}
  minor=${minor%%.*}
  if ((major < NODE_MAJOR_MIN || (major == NODE_MAJOR_MIN && minor < NODE_MINOR_MIN))); then
    missing "Node ${version} is too old; ${NODE_MAJOR_MIN}.${NODE_MINOR_MIN} or later is needed." \
      "Install it from https://nodejs.org (distributions often carry an older one), then run this again."
  fi
}

# npm writes node_modules/.package-lock.json last, so its age is the age of the installation.
install_packages() {
  local installed=node_modules/.package-lock.json
  if [[ -f $installed && ! package-lock.json -nt $installed ]]; then return; fi
  command -v npm >/dev/null ||
    missing "npm is not installed." "It comes with Node from https://nodejs.org."
  say "installing npm packages (about half a minute)"
  quietly npm ci --no-audit --no-fund || {
    say "npm ci failed"
    exit 1
  }
  touch "$installed"
}

# $1: program, $2: variable that may name its path. A path that was named and is no program is said.
is_present() {
  local named=${!2:-}
  if [[ -n $named ]]; then
    [[ -x $named && -f $named ]] ||
      missing "$2 names $named, which is not a program." "Correct or unset $2."
    return 0
  fi
  command -v "$1" >/dev/null
}

# TENURE_POSTGRES_BIN names the folder with initdb and postgres, which packages keep off the PATH.
has_postgres() {
  local named=${TENURE_POSTGRES_BIN:-}
  if [[ -n $named ]]; then
    [[ -x $named/initdb && -x $named/postgres ]] ||
      missing "TENURE_POSTGRES_BIN names $named, where initdb and postgres are not." \
        "Correct or unset TENURE_POSTGRES_BIN."
    return 0
  fi
  command -v initdb >/dev/null ||
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
    compgen -G '/opt/homebrew/opt/postgresql@*/bin/initdb' >/dev/null
}

# What `npm run chaos` needs of a Linux machine, by package. It runs as root only, so no one else is asked.
missing_chaos_tools() {
  if ((EUID != 0)) || ! command -v apt-get >/dev/null; then return; fi
  command -v ip >/dev/null || echo iproute2
  command -v iptables >/dev/null || echo iptables
  compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || echo libfaketime
}

# On macOS the compiler comes with the command line tools that Homebrew itself needs.
has_compiler() {
  command -v gcc >/dev/null || return 1
  printf '#include <stdio.h>\n' | gcc -E -x c - >/dev/null 2>&1
}

install_servers() {
  local apt_names=() brew_names=()
  if ! is_present etcd TENURE_ETCD_BIN; then
    apt_names+=(etcd-server etcd-client)
    brew_names+=(etcd)
  fi
  if ! is_present nats-server TENURE_NATS_BIN; then
    apt_names+=(nats-server)
    brew_names+=(nats-server)
  fi
  if [[ ${TENURE_SETUP:-} == test ]]; then
    if ! has_postgres; then
      apt_names+=(postgresql)
      brew_names+=(postgresql@16)
    fi
    if ! command -v pgbouncer >/dev/null; then
      apt_names+=(pgbouncer)
      brew_names+=(pgbouncer)
    fi
    if ! is_present redis-server TENURE_REDIS_BIN; then
      apt_names+=(redis-server)
      brew_names+=(redis)
    fi
    # Spin writes a verifier in C, which the model of liveness compiles.
    if ! command -v spin >/dev/null; then
      apt_names+=(spin)
      brew_names+=(spin)
    fi
    if ! has_compiler; then apt_names+=(gcc libc6-dev); fi
  fi
  # shellcheck disable=SC2207
  if [[ ${TENURE_SETUP:-} == test ]]; then apt_names+=($(missing_chaos_tools)); fi
  if ((${#apt_names[@]} == 0)); then return; fi
  if command -v apt-get >/dev/null; then
    say "installing ${apt_names[*]}"
    install_with_apt "${apt_names[@]}"
  elif command -v brew >/dev/null; then
    say "installing ${brew_names[*]}"
    quietly brew install "${brew_names[@]}" ||
      missing "brew could not install them." "brew install ${brew_names[*]}"
  else
    missing "Neither apt-get nor brew is here to install ${brew_names[*]}." \
      "Install them by hand and put them on the PATH, or name them in the TENURE_..._BIN variables."
  fi
}

install_with_apt() {
  local as_root=() line="apt-get update && apt-get install -y --no-install-recommends $*"
  if ((EUID != 0)); then
    line="sudo sh -c '$line'"
    # A password can be asked for at a terminal only.
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      as_root=(sudo)
    else
      missing "Installing with apt needs root." "$line"
    fi
  fi
  quietly "${as_root[@]}" apt-get update || say "apt-get update failed; trying with the lists at hand"
  # Debian's packages start system services at installation; Tenure runs its own servers. A policy that
  # answers 101 keeps them from starting, unless the machine has a policy already.
  local policy=/usr/sbin/policy-rc.d status=0
  if [[ ! -e $policy ]]; then
    # shellcheck disable=SC2064
    trap "${as_root[*]} rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod +x "$policy"
  fi
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@" || status=$?
  if ((status != 0)); then missing "apt-get could not install $*." "$line"; fi
}

check_node
install_packages
install_servers
