#!/bin/sh
# Installs Chromium and fonts if they are missing. The tests of the web page run it without a window.
# Run from the repository's root: tools/chromium.sh
set -eu

has_chromium() {
	for name in chromium chromium-browser google-chrome google-chrome-stable; do
		command -v "$name" >/dev/null 2>&1 && return 0
	done
	[ -x "/Applications/Chromium.app/Contents/MacOS/Chromium" ] || [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]
}

has_chromium || tools/apt.sh "tests of the web page need chromium" chromium fonts-dejavu-core
has_chromium && exit 0
echo "Chromium is missing. The tests of the web page need it." >&2
echo "Debian: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium; or install Google Chrome" >&2
exit 1
