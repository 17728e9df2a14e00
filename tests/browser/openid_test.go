package browser

import (
	"net/http/httptest"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// openID is an OpenID provider with a login page, a complete one of a well-kept library: the page is to be
// tested against somebody else's understanding of the protocol.
type openID struct {
	*httptest.Server
	issuer string
}

// The people whom the provider knows, by their sub. All have the password.
const (
	alice    = "alice"
	mallory  = "mallory"
	password = "correct horse battery staple"
)

type people map[string]*storage.User

func (p people) GetUserByID(id string) *storage.User         { return p[id] }
func (p people) GetUserByUsername(name string) *storage.User { return p[name] }
func (p people) ExampleClientID() string                     { return storage.ServiceUserID }

func startOpenID() *openID {
	server := httptest.NewUnstartedServer(nil)
	issuer := "http://" + server.Listener.Addr().String()
	known := people{}
	for _, name := range []string{alice, mallory} {
		known[name] = &storage.User{ID: name, Username: name, Password: password}
	}
	server.Config.Handler = exampleop.SetupServer(issuer, storage.NewStorage(known), nil, false)
	server.Start()
	return &openID{server, issuer}
}

// clientSecret is the page's at the provider.
const clientSecret = "the-page's-own"

// register makes a page known to the provider.
func (*openID) register(clientID, callback string) {
	storage.RegisterClients(storage.WebClient(clientID, clientSecret, callback))
}
