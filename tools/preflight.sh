#!/bin/sh
# Checks that this machine has the tools for a build, and names a missing one.
# Run from the repository's root: tools/preflight.sh [race]
# With "race", it also checks the requirements of `go test -race`: a C compiler and libc's headers.
set -eu

fail() {
	for line; do echo "$line" >&2; done
	exit 1
}

command -v git >/dev/null 2>&1 || fail "git is missing. Debian, Ubuntu: apt-get install git"

need=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
command -v go >/dev/null 2>&1 ||
	fail "Go is missing: install Go 1.$need or newer, see https://go.dev/doc/install"
# Here an older Go (since 1.21) downloads the version that go.mod requires, or fails.
version=$(go env GOVERSION 2>&1) || fail "$version" "Go 1.$need or newer is needed, see https://go.dev/doc/install"
minor=$(echo "$version" | sed -n 's/.*go1\.\([0-9]*\).*/\1/p')
[ "${minor:-0}" -ge "$need" ] ||
	fail "Go 1.$need or newer is needed, this is $version; see https://go.dev/doc/install"

[ "${1:-}" = race ] || exit 0

cc_works() {
	# Unquoted, because CC may contain flags.
	echo '#include <stdlib.h>' | $(go env CC) -x c -c - -o /dev/null 2>/dev/null
}
cc_works && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "go test -race needs a C compiler: installing gcc and libc6-dev" >&2
	{ apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev; } >&2 || true
	cc_works && exit 0
fi
fail "go test -race needs a C compiler and libc's headers, but \"$(go env CC)\" does not compile." \
	"Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc glibc-devel; macOS: xcode-select --install"
