// Package discover takes the place of github.com/hashicorp/go-discover in the test stack's KV store.
//
// The store's server can look for other members of its cluster in a dozen clouds. Ours is one member
// on a local folder and never looks; but linking the real package compiles every cloud's client, a
// third of all packages and more than half of the time. What is here is enough to compile against and
// refuses to be used.
package discover

import (
	"errors"
	"log"
)

var errNone = errors.New("the test stack's store looks for no other members")

// Config is a parsed request for a search.
type Config map[string]string

// Parse refuses every request.
func Parse(string) (Config, error) { return nil, errNone }

// String is empty: no request is ever parsed.
func (Config) String() string { return "" }

// Provider searches in one place.
type Provider interface {
	Addrs(args map[string]string, l *log.Logger) ([]string, error)
	Help() string
}

// Providers is empty: there is nowhere to search.
var Providers = map[string]Provider{}

// Discover would search.
type Discover struct{}

// Option configures a Discover.
type Option func(*Discover) error

// New returns a Discover that finds nothing.
func New(...Option) (*Discover, error) { return &Discover{}, nil }

// WithProviders ignores the providers.
func WithProviders(map[string]Provider) Option { return func(*Discover) error { return nil } }

// Addrs refuses every search.
func (*Discover) Addrs(string, *log.Logger) ([]string, error) { return nil, errNone }
