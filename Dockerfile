# A static binary and nothing else: no shell, no packages, an unprivileged user, nothing to write.
#
#   make image                          # with docker, podman or buildah; IMAGE=, PLATFORMS=, PUSH=1
#   docker build --build-arg VERSION="$(git describe --tags --always)" --build-arg REVISION="$(git rev-parse HEAD)" -t tattler .
#   docker build --build-arg PROGRAM=tattler-cloud -t tattler-cloud .
#   docker run --rm --read-only tattler version
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# tattler-cloud adds the sinks of AWS, Google Cloud and Azure. It is a module of its own.
ARG PROGRAM=tattler
ARG VERSION=
ARG TARGETOS TARGETARCH
RUN if [ "$PROGRAM" = tattler-cloud ]; then cd cloud; fi && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/tattler-dev/tattler/internal/buildinfo.stamped=${VERSION}" \
    -o /out/tattler ./cmd/$PROGRAM
# The licences of what the program links, from the module cache.
RUN dir=.; if [ "$PROGRAM" = tattler-cloud ]; then dir=cloud; fi && \
    cd tools && CGO_ENABLED=0 go run -buildvcs=false ./cmd/notices "$PROGRAM" "../$dir" "./cmd/$PROGRAM" "$TARGETOS/$TARGETARCH" \
    >/out/THIRD-PARTY-LICENSES.txt

FROM scratch
# Certificate authorities for webhooks. The API server's comes with the service account.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Time zones, which Go reads from this file.
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /usr/share/zoneinfo.zip
COPY --from=build /out/tattler /tattler
COPY --from=build /src/LICENSE /licenses/LICENSE
COPY --from=build /out/THIRD-PARTY-LICENSES.txt /licenses/THIRD-PARTY-LICENSES.txt
COPY --from=build /usr/share/doc/ca-certificates/copyright /licenses/ca-certificates.txt
ARG PROGRAM=tattler
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="$PROGRAM" \
      org.opencontainers.image.description="Records every change in a Kubernetes cluster, and delivers it to sinks" \
      org.opencontainers.image.source="https://github.com/tattler-dev/tattler" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV ZONEINFO=/usr/share/zoneinfo.zip
# A numeric user, so that Kubernetes can check runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/tattler"]
