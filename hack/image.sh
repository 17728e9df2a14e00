#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# image.sh: builds the image of operator and card server into $IMAGE_TAR, named $IMG, for $IMAGE_PLATFORMS.
#
# $IMAGE_BUILDER is `go` (hack/image; needs nothing but Go), or docker, podman or buildah, which use
# the Dockerfile. Both ways give the same files in the same places; only the first one gives the same
# digest for the same commit.
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mkdir -p bin "$(dirname "$IMAGE_TAR")"
created=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

case $IMAGE_BUILDER in
go)
	binaries=()
	for platform in ${IMAGE_PLATFORMS//,/ }; do
		# The entrypoint first. One image, so that the two are always of one version.
		for program in manager=c5c3-operator cards=c5c3-cards; do
			binary=bin/${platform//\//-}/${program%=*}
			say "building $binary"
			GOOS=${platform%%/*} GOARCH=$(cut -d/ -f2 <<<"$platform") go build \
				-ldflags "-s -w -X main.version=$VERSION" -o "$binary" "./cmd/${program#*=}"
			binaries+=(-binary "$platform=$PWD/$binary")
		done
	done
	go -C hack/image run . "${binaries[@]}" \
		-name "$IMG" -version "$VERSION" -revision "$REVISION" -created "$created" \
		-ca-roots "${CA_ROOTS:-/etc/ssl/certs/ca-certificates.crt}" -out "$(realpath -m "$IMAGE_TAR")"
	;;
docker | podman | buildah)
	[[ $IMAGE_BUILDER != docker ]] || docker info >/dev/null 2>&1 || {
		say "no docker engine answers; 'make image' without IMAGE_BUILDER needs none"
		exit 1
	}
	"$IMAGE_BUILDER" build --platform "${IMAGE_PLATFORMS// /,}" --build-arg "VERSION=$VERSION" \
		--build-arg "REVISION=$REVISION" -t "$IMG" -f Dockerfile .
	if [[ $IMAGE_BUILDER == buildah ]]; then
		buildah push "$IMG" "docker-archive:$IMAGE_TAR:$IMG"
	else
		"$IMAGE_BUILDER" save -o "$IMAGE_TAR" "$IMG"
	fi
	;;
*)
	echo "image.sh: IMAGE_BUILDER is go, docker, podman or buildah, not '$IMAGE_BUILDER'" >&2
	exit 2
	;;
esac
say "$IMG is in $IMAGE_TAR"
