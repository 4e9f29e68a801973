# One image, one binary: `rooms manager` and `rooms bridge` (config/manager, config/bridge).
FROM --platform=${BUILDPLATFORM:-linux/amd64} golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} GOFLAGS=-buildvcs=false go build -trimpath \
    -ldflags "-s -w -X main.version=${VERSION}" \
    -o /out/rooms ./cmd/rooms

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/rooms /rooms
USER 65532:65532
ENTRYPOINT ["/rooms"]
