# The image contains one static binary, the time zones included, and the public certificates.
#   docker build -t roomsensor:dev --build-arg VERSION=1.2.3 .
# `go tool task image` builds the same from a locally built binary, without pulls.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY client/go.mod client/
COPY client/export/go.mod client/export/
COPY client/localcopy/go.mod client/localcopy/
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -tags timetzdata -ldflags "-s -w -X main.version=$VERSION" \
    -o /image/roomsensor ./cmd/roomsensor
RUN install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt

FROM scratch
ARG VERSION=
LABEL org.opencontainers.image.title="roomsensor" \
      org.opencontainers.image.description="Stores the readings of room sensors and serves them to their teams." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /image /
# It writes no file: run it with a read-only file system.
USER 65532:65532
# All addresses, because Docker can publish no others. Do not publish the port of OPS_ADDR.
ENV API_ADDR=0.0.0.0:8080 INGEST_ADDR=0.0.0.0:8081 DASHBOARD_ADDR=0.0.0.0:8082 OPS_ADDR=0.0.0.0:9080
EXPOSE 8080 8081 8082 9080
# Reports whether the process is ready. Docker kills after 10 s by default, so use --stop-timeout 30.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 CMD ["/roomsensor", "healthcheck"]
ENTRYPOINT ["/roomsensor"]
