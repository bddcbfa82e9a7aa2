#!/bin/sh
# Reports what this machine lacks before a build fails because of it.
# Run from the repository's root: tools/preflight.sh [race]
# With "race", it also checks what `go test -race` needs: a C compiler and libc's headers.
set -eu

fail() {
	for line; do echo "$line" >&2; done
	exit 1
}

command -v git >/dev/null 2>&1 || fail "git is missing. Debian, Ubuntu: apt-get install git"

need=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
command -v go >/dev/null 2>&1 ||
	fail "Go is missing: install Go 1.$need or newer, see https://go.dev/doc/install"
# In here an older Go (since 1.21) fetches the one that go.mod asks for, or says why not.
version=$(go env GOVERSION 2>&1) || fail "$version" "Go 1.$need or newer is needed, see https://go.dev/doc/install"
minor=$(echo "$version" | sed -n 's/.*go1\.\([0-9]*\).*/\1/p')
[ "${minor:-0}" -ge "$need" ] ||
	fail "Go 1.$need or newer is needed, this is $version; see https://go.dev/doc/install"

[ "${1:-}" = race ] || exit 0

cc_works() {
	# CC may carry flags, therefore unquoted.
	echo '#include <stdlib.h>' | $(go env CC) -x c -c - -o /dev/null 2>/dev/null
}
cc_works && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "go test -race needs a C compiler: installing gcc and libc6-dev" >&2
	{ apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev; } >&2 || true
	cc_works && exit 0
fi
fail "go test -race needs a C compiler and libc's headers, and \"$(go env CC)\" does not compile." \
	"Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc glibc-devel; macOS: xcode-select --install"
