# A static binary and nothing else: no shell, no packages, an unprivileged user, nothing to write.
#
#   make image                          # with docker, podman or buildah; IMAGE=, PLATFORMS=, PUSH=1
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t tattler .
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

FROM scratch
# Certificate authorities for webhooks. The API server's comes with the service account.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Time zones, which Go reads from this file.
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /usr/share/zoneinfo.zip
COPY --from=build /out/tattler /tattler
ENV ZONEINFO=/usr/share/zoneinfo.zip
# A numeric user, so that Kubernetes can check runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/tattler"]
