# SPDX-License-Identifier: Apache-2.0
# `make image IMAGE_BUILDER=docker` (or podman, buildah). Without a builder at hand `make image`
# packs the same files with hack/image: keep the two alike.

# scratch by default: the static binaries, CA roots and /tmp are all that is needed.
# gcr.io/distroless/static:nonroot works too, for those who require a base that scanners know.
ARG BASE=scratch

# The builder runs on the machine's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /src
# Modules first: they change less often than the code, and their layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION" -o /out/manager ./cmd/c5c3-operator
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION" -o /out/cards ./cmd/c5c3-cards
RUN mkdir -m 1777 /out/tmp \
 && echo 'root:x:0:0:root:/:/sbin/nologin' >/out/passwd \
 && echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >>/out/passwd \
 && echo 'root:x:0:' >/out/group && echo 'nonroot:x:65532:' >>/out/group

FROM ${BASE}
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="c5c3-operator" \
      org.opencontainers.image.description="Keystone identities and rotating application credentials, ordered as Kubernetes objects" \
      org.opencontainers.image.source="https://github.com/c5c3/c5c3-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/passwd /out/group /etc/
COPY --from=build --chmod=1777 /out/tmp /tmp
COPY --from=build /out/manager /out/cards /
# By number, because the kubelet's runAsNonRoot check cannot look a name up.
USER 65532:65532
ENTRYPOINT ["/manager"]
