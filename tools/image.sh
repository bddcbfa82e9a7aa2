#!/bin/sh
# Builds the image of tattler, or of PROGRAM (tattler-cloud), for PLATFORMS, with docker, podman or buildah, whichever is
# there first; TOOL chooses one. PUSH=1 also pushes it.
set -eu

program=${PROGRAM:-tattler}
image=${IMAGE:-ghcr.io/tattler-dev/$program}:${TAG:-${VERSION:-latest}}
platforms=${PLATFORMS:-linux/amd64,linux/arm64}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || true)} # empty outside of a git work tree

usable() { # whether a tool is installed, and for docker, whether its daemon answers
	case $1 in
	docker) command -v docker >/dev/null && docker buildx version >/dev/null 2>&1 && docker info >/dev/null 2>&1 ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

tool=${TOOL:-}
for t in docker podman buildah; do
	if [ -z "$tool" ] && usable "$t"; then tool=$t; fi
done
if [ -z "$tool" ]; then
	echo "make image needs docker (with buildx and a running daemon), podman or buildah; none is usable here" >&2
	exit 1
fi

echo "building $image for $platforms with $tool" >&2
args="--build-arg PROGRAM=$program --build-arg VERSION=${VERSION:-} --build-arg REVISION=$revision --platform $platforms --file Dockerfile"
# shellcheck disable=SC2086 # the arguments have no spaces
case $tool in
docker)
	# Without a push, docker loads one platform: its own image store has no manifest lists by default.
	if [ -n "${PUSH:-}" ]; then
		docker buildx build $args --tag "$image" --push .
	elif [ "${platforms#*,}" != "$platforms" ]; then
		docker buildx build $args --tag "$image" .
		echo "built and cached, but not loaded: docker loads one platform only. Set PLATFORMS=linux/amd64, or PUSH=1" >&2
	else
		docker buildx build $args --tag "$image" --load .
	fi
	;;
podman | buildah)
	$tool manifest rm "$image" >/dev/null 2>&1 || true
	$tool build $args --manifest "$image" .
	if [ -n "${PUSH:-}" ]; then $tool manifest push --all "$image" "docker://$image"; fi
	;;
*)
	echo "TOOL is $tool; want docker, podman or buildah" >&2
	exit 1
	;;
esac
