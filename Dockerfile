# The image holds one static binary and the public certificates.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -tags timetzdata -o /roomsensor ./cmd/roomsensor

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /roomsensor /roomsensor
USER 65532:65532
ENTRYPOINT ["/roomsensor"]
