#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tool.sh NAME      builds the tool pinned in hack/tools/NAME once and prints the path of its binary.
# tool.sh --list    prints the names that can be asked for.
#
# Binaries live in the user's cache under their version and a hash of everything that went into
# them, so a second clone, another branch or a CI run rebuilds nothing and a raised version never
# meets a stale binary. `go tool` would be shorter, but it links anew in every clone's first call
# and cannot build chainsaw, which needs a file added (see chainsaw/build.sh).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} == --list ]]; then
	for dir in "$here"/*/go.mod; do basename "$(dirname "$dir")"; done
	exit
fi

name=${1:?usage: tool.sh NAME | --list}
module=$here/$name
[[ -f $module/go.mod ]] || { echo "tool.sh: no pinned tool named '$name' in $here" >&2; exit 2; }

# No cgo and no paths of this machine in the binary: the result depends on the hash's inputs only.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' GOWORK=off

# The version is that of the requirement which provides the tool: the longest module path that is
# a prefix of the package named by the first tool directive. Further ones only keep in go.mod what somebody
# else builds from the same module.
package=$(awk '$1 == "tool" { print $2; exit }' "$module/go.mod")
version=$(awk -v pkg="$package" '
	{ sub(/^require /, ""); sub(/^[ \t]+/, "") }
	index(pkg "/", $1 "/") == 1 && length($1) > longest { longest = length($1); version = $2 }
	END { print version }' "$module/go.mod")
[[ -n $package && -n $version ]] || { echo "tool.sh: $module/go.mod names no tool or no version" >&2; exit 2; }

hash=$({
	go -C "$module" env GOVERSION GOOS GOARCH
	cat "$module/go.mod" "$module/go.sum"
	[[ ! -f $module/build.sh ]] || cat "$module/build.sh"
} | sha256sum | cut -c1-12)

out=${XDG_CACHE_HOME:-$HOME/.cache}/c5c3-operator/tools/$name/$version-$hash
if [[ ! -x $out/$name ]]; then
	mkdir -p "$out"
	# One build at a time: two make targets that want the same tool would otherwise compile it twice.
	exec 9>"$out/.lock"
	flock 9
	if [[ ! -x $out/$name ]]; then
		echo "building $name $version (kept in $out)" >&2
		started=$SECONDS
		work=$(mktemp -d "$out/.build.XXXXXX")
		trap 'rm -rf "$work"' EXIT
		if [[ -f $module/build.sh ]]; then
			"$module/build.sh" "$module" "$work" "$version" >&2
		else
			go -C "$module" build -ldflags='-s -w' -o "$work/$name" "$package" >&2
		fi
		# The rename comes last, so that an interrupted build never leaves a half-written tool behind.
		mv "$work/$name" "$out/$name"
		echo "built $name $version in $((SECONDS - started))s" >&2
	fi
fi
echo "$out/$name"
