#!/bin/sh
# Installs the tools of other people that tests hold our vaults against, where that is allowed: as root, with apt. Quiet
# when all are here; otherwise says what is missing and why, and never fails: the tests name what they skip.
missing=""
for tool in skopeo umoci; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "tools:$missing not installed: that needs root" >&2
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "tools:$missing not installed: there is no apt-get" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
limits="-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10"
# Lists may be there and fresh enough: then no update is needed.
install() {
  # shellcheck disable=SC2086 # words on purpose
  timeout 120 apt-get $limits install -y --no-install-recommends $missing >/dev/null 2>&1
}
# shellcheck disable=SC2086
install || { timeout 60 apt-get $limits update >/dev/null 2>&1 && install; } ||
  echo "tools:$missing not installed: apt-get could not" >&2
exit 0
