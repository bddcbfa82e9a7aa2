#!/bin/sh
# Downloads axe-core, which checks the accessibility of web pages, into the user's cache. The tests of the web page use it.
# Run from the repository's root: tools/axe.sh
# npm downloads it, with the registry, the proxy and the credentials of its own configuration.
set -eu

version=4.14.1 # integration/browser/axe_test.go has it, too
sha512=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5

case $(uname) in # as os.UserCacheDir of Go
Darwin) cache=$HOME/Library/Caches ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
dir=$cache/tattler/axe-core
file=$dir/axe-$version.min.js
[ -s "$file" ] && exit 0

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
	for line; do echo "$line" >&2; done
	exit 1
}

echo "downloading axe-core $version, which the tests of the web page need" >&2
tarball=$tmp/axe-core-$version.tgz
command -v npm >/dev/null 2>&1 || tools/apt.sh "tests of the web page need npm, to download axe-core" npm
command -v npm >/dev/null 2>&1 || fail "npm is missing. It downloads axe-core, which the tests of the web page need." \
	"Debian: apt-get install npm; Fedora: dnf install npm; macOS: brew install node"
(cd "$tmp" && npm pack --loglevel=error "axe-core@$version") >/dev/null 2>"$tmp/log" || true
[ -s "$tarball" ] || fail "$(head -n 4 "$tmp/log")" \
	"axe-core $version cannot be downloaded from the npm registry. The tests of the web page need it." \
	"Check the registry and the proxy of 'npm config list', or save axe.min.js of that package as $file."

sum() { if command -v sha512sum >/dev/null 2>&1; then sha512sum "$1"; else shasum -a 512 "$1"; fi; }
got=$(sum "$tarball" | cut -d' ' -f1)
[ "$got" = "$sha512" ] || fail "axe-core $version has another checksum than expected, and was not kept:" "  got  $got" "  want $sha512"

tar -xzf "$tarball" -C "$tmp" package/axe.min.js
mkdir -p "$dir"
mv "$tmp/package/axe.min.js" "$file.$$"
mv "$file.$$" "$file"
