# The server, its licence and those of what it is linked with, and nothing else: no shell, no libraries. It is
# cross-compiled, so that no architecture is emulated.
#
#   make image

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG LDFLAGS
# Where modules come from, if not from the default.
ARG GOPROXY=""
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY pkg pkg
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -ldflags "-s -w ${LDFLAGS}" -o /workerimage-apiserver ./cmd/workerimage-apiserver

FROM scratch
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="workerimage-apiserver" \
      org.opencontainers.image.description="Serves the golden Talos images of a Cozystack cluster as an aggregated API" \
      org.opencontainers.image.source="https://github.com/cozystack/workerimage-apiserver" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /workerimage-apiserver /workerimage-apiserver
COPY LICENSE THIRD_PARTY_NOTICES /licenses/
# A number, since there are no names here: only of a number can a node tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/workerimage-apiserver"]
