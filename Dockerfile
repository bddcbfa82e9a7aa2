# A static binary and nothing else: no shell, no packages, an unprivileged user.
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" -t tattler .
#   docker run --rm tattler version
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/tattler-dev/tattler/internal/buildinfo.stamped=${VERSION}" \
    -o /out/tattler ./cmd/tattler

FROM scratch
# Certificate authorities for webhooks. The API server's comes with the service account.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tattler /tattler
# A numeric user, so that Kubernetes can check runAsNonRoot.
USER 65532:65532
ENTRYPOINT ["/tattler"]
