package order

import (
	"crypto/sha256"
	"fmt"
)

// maxMarkLength is K-ORC's limit on a description, in bytes.
const maxMarkLength = 255

// Mark is the description that what the operator makes in Keystone carries. It names the order for
// whoever reads it there; the UID makes it this order and not a later one of the same name, and the
// cluster keeps one target cluster from writing an order that passes for another's.
//
// The mark, and not an id in the order's status, decides what is the order's in Keystone: status lives
// on the order's cluster, where somebody may write into it the id of a user or project that is not his.
func (p *Pass) Mark() string {
	cluster := ""
	if p.Key.Cluster != "" {
		cluster = " on cluster " + p.Key.Cluster
	}
	mark := fmt.Sprintf("%s %s/%s%s (uid %s)", p.Kind.Name, p.Key.Namespace, p.Key.Name, cluster, p.Order.GetUID())
	if len(mark) > maxMarkLength {
		// Only the longest of names get here. A digest of all that was to be said keeps what was cut
		// off from making two orders one.
		return fmt.Sprintf("%s %s (sha256 %x)", p.Kind.Name, p.Key.Name, sha256.Sum256([]byte(mark)))
	}
	return mark
}
