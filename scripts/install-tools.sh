#!/bin/sh
# Installs programs of other projects that some tests need: skopeo and umoci read our vaults, busybox is a shell that the
# keeper supports, shellcheck reads our scripts. Needs root and apt-get. Prints nothing when all are installed; otherwise
# prints what is missing and why. Never fails: tests that need a missing program print that they are skipped.
missing=""
for tool in skopeo umoci busybox shellcheck; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "tools:$missing not installed: needs root" >&2
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "tools:$missing not installed: needs apt-get" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
limits="-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10"
install() {
  # shellcheck disable=SC2086 # split into words on purpose
  timeout 120 apt-get $limits install -y --no-install-recommends $missing >/dev/null 2>&1
}
# The package lists may be recent enough already.
# shellcheck disable=SC2086
install || { timeout 60 apt-get $limits update >/dev/null 2>&1 && install; } ||
  echo "tools:$missing not installed: apt-get failed" >&2
exit 0
