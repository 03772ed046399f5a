#!/usr/bin/env bash
# Installs what the rivals of the benchmark need, with apt where there is apt: Go and etcd's Go client,
# kazoo and ZooKeeper's jars, PostgreSQL, Redis. Only `npm run bench` calls it. A rival whose parts
# cannot be installed here is left out of the run and listed with the reason, so this never fails.
# TENURE_RIVALS=none leaves all as it is. Progress goes to stderr; nothing happens when all is there.
set -euo pipefail

say() { printf 'rivals: %s\n' "$*" >&2; }

[[ ${TENURE_RIVALS:-} != none ]] || exit 0
export PATH="$PATH:/usr/sbin:/usr/bin"

if ! command -v apt-get >/dev/null; then
  say "no apt-get here: rivals that are not installed are left out"
  exit 0
fi

# A package is there when its main file is.
wanted=()
want() { compgen -G "$2" >/dev/null || wanted+=("$1"); }
want golang-go /usr/bin/go
want golang-etcd-server-dev /usr/share/gocode/src/go.etcd.io/etcd/clientv3/concurrency/election.go
want python3-kazoo /usr/lib/python3/dist-packages/kazoo/recipe/partitioner.py
want default-jre-headless /usr/bin/java
want libzookeeper-java /usr/share/java/zookeeper.jar
want postgresql '/usr/lib/postgresql/*/bin/initdb'
want redis-server /usr/bin/redis-server
((${#wanted[@]} > 0)) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
    say "root is needed: sudo apt-get install -y --no-install-recommends ${wanted[*]}"
    exit 0
  fi
  as_root=(sudo)
fi

# Packages of servers start a system service at installation; the benchmark runs servers of its own.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  # shellcheck disable=SC2064
  trap "${as_root[*]} rm -f $policy" EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
fi

log=$(mktemp)
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1 </dev/null
}
say "installing ${wanted[*]} (some minutes)"
"${as_root[@]}" apt-get update >>"$log" 2>&1 </dev/null || say "apt-get update failed; trying with the lists at hand"
# Together is faster; one by one lets the others be where one cannot be.
if ! install "${wanted[@]}"; then
  for package in "${wanted[@]}"; do
    install "$package" || say "$package could not be installed; the log is in $log"
  done
fi
