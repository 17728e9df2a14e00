package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/publish"
	"github.com/c5c3/c5c3-operator/internal/cards/web"
	"github.com/c5c3/c5c3-operator/internal/command"
	"github.com/c5c3/c5c3-operator/internal/credupdate"
	"github.com/c5c3/c5c3-operator/internal/egress"
	"github.com/c5c3/c5c3-operator/internal/metrics"
	"github.com/c5c3/c5c3-operator/internal/providers"
)

// leaseName is the Lease of the leader election. Only the leader publishes; every replica serves the page.
const leaseName = "c5c3-cards"

// server is what both halves of the process are made of.
type server struct {
	manager.Manager
	options *options
	config  *config
	key     link.Key
	catalog *providers.Catalog
	egress  *egress.Guard
	// direct reads and writes without a cache. Secrets must not be in one, and a stale request would lead to a
	// second card, or to an answer to a request that is over.
	direct client.Client
}

// newManager makes the manager with the publisher and the page. Whatever is wrong with the configuration is an
// error here, and the process ends: half of it would be a channel or a page that is silently not there.
func newManager(kube *rest.Config, o *options) (manager.Manager, error) {
	s := &server{options: o, egress: o.Egress()}
	var err error
	if s.config, err = loadConfig(o.config, s.egress); err != nil {
		return nil, err
	}
	if s.key, err = readKey(o.linkKey); err != nil {
		return nil, err
	}
	if s.catalog, err = o.Catalog(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, agents.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	mo := o.Manager(scheme, leaseName)
	mo.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if s.Manager, err = manager.New(kube, mo); err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if s.direct, err = client.New(kube, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	for _, add := range []func() error{s.addProbes, s.addPublisher, s.addPage} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return s.Manager, nil
}

func (s *server) addProbes() error { return command.AddProbes(s.Manager) }

func (s *server) addPublisher() error {
	messages := metrics.NewCardMessages()
	if err := ctrlmetrics.Registry.Register(messages); err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	settings := publish.Settings{
		Client: s.direct, Events: s.GetEventRecorder("c5c3-cards"), Clock: clock.RealClock{}, Messages: messages,
		Channels: s.config.Channels(publish.Environment{
			Client: s.direct, Egress: s.egress, Clock: clock.RealClock{}, Instance: instance, Source: s.config.ExternalURL,
		}),
		ProviderTitle: func(id string) string {
			provider, _ := s.catalog.Provider(id)
			return provider.Title
		},
	}
	if s.config.ExternalURL != "" {
		settings.Link = s.link
	}
	return publish.New(settings).Setup(s.Manager)
}

// link makes a link that is good for longer than its request, so that the page can say what became of that.
func (s *server) link(request *agents.CredentialUpdateRequest) (string, error) {
	now := time.Now()
	token, err := s.key.Sign(link.Claims{
		Audience: s.config.ExternalURL, Request: client.ObjectKeyFromObject(request), UID: request.UID,
		IssuedAt: now, Expires: now.Add(credupdate.LinkLifetime),
	})
	if err != nil {
		return "", err
	}
	return link.URL(s.config.ExternalURL, token)
}

// addPage serves the page on every replica. Without an external URL no link could lead to it.
func (s *server) addPage() error {
	if s.config.ExternalURL == "" {
		s.GetLogger().Info("there is no page and there are no cards: externalURL is missing in the configuration")
		return nil
	}
	oidc, err := s.config.Login.OIDC.settings()
	if err != nil {
		return err
	}
	if oidc != nil {
		oidc.HTTPClient = s.egress.Client()
	}
	page, err := web.New(web.Config{
		BaseURL: s.config.ExternalURL, Key: s.key, Client: s.direct, Catalog: s.catalog, Prober: providers.Prober{Transport: s.egress},
		OIDC: oidc, Tokens: s.config.Login.Kubernetes.settings(), TrustedProxies: s.config.TrustedProxies, Log: s.GetLogger().WithName("page"),
	})
	if err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	return s.serve(page)
}

func (s *server) serve(page http.Handler) error {
	listener, err := net.Listen("tcp", s.options.pageAddress) //nolint:noctx // it lives as long as the process
	if err != nil {
		return fmt.Errorf("listening for the page: %w", err)
	}
	if s.options.tlsCert != "" {
		watcher, err := certwatcher.New(s.options.tlsCert, s.options.tlsKey)
		if err != nil {
			return fmt.Errorf("reading the page's certificate: %w", err)
		}
		if err := s.Add(watcher); err != nil {
			return fmt.Errorf("following the page's certificate: %w", err)
		}
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate})
	}
	if err := s.Add(&manager.Server{Name: "page", Server: web.NewServer(page), Listener: listener}); err != nil {
		return fmt.Errorf("adding the page: %w", err)
	}
	return nil
}
