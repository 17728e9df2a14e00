package credentialupdaterequest

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Kinds of origins, which the runner of a session writes and this package reads.
const (
	OriginMCPServer      = "mcpserver"
	OriginToolkit        = "toolkit"
	OriginSidecarToolbox = "sidecartoolbox"
)

// origin is where a tool comes from.
type origin struct{ kind, name string }

// parseOrigin reads "<kind>/<name>". The name becomes a part of a URL of the API server's, so it has to be
// one that an object can have: client-go would fail on another without asking, and the request would be
// tried again for ever.
func parseOrigin(text string) (origin, bool) {
	kind, name, found := strings.Cut(text, "/")
	if !found || kind == "" || !objectName(name) {
		return origin{}, false
	}
	return origin{kind, name}, true
}

func objectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
