// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/tests/soak/ledger"
)

// sampleEvery is the time between two looks at what Keystone holds.
const sampleEvery = 3 * time.Second

// registry is what Keystone's administrator can see: the truth about credentials, which no status and no
// K-ORC object stands in for.
type registry struct {
	service *keystone.Service
	admin   clouds.Cloud
	ledger  *ledger.Ledger
	// users are the Keystone ids of the run's users.
	users []string
	// owners maps what a credential's name begins with to its order.
	owners map[string]string
}

func newRegistry(service *keystone.Service) (*registry, error) {
	password, err := os.ReadFile(os.Getenv("KEYSTONE_ADMIN_PASSWORD_FILE"))
	if err != nil {
		return nil, fmt.Errorf("KEYSTONE_ADMIN_PASSWORD_FILE: %w", err)
	}
	return &registry{service: service, owners: map[string]string{}, admin: clouds.Cloud{
		AuthURL: os.Getenv("OS_AUTH_URL"),
		Password: &clouds.PasswordAuth{
			Username: "admin", UserDomainName: "Default", Password: strings.TrimSpace(string(password)),
			ProjectName: "admin", ProjectDomainName: "Default",
		},
	}}, nil
}

// own tells the registry of an order. K-ORC names a credential after its object.
func (r *registry) own(namespace, name string) {
	key := order.Key{Namespace: namespace, Name: name}
	r.owners[order.ApplicationCredentialKind.Prefix(key)+"credential-v"] = name
}

// run samples until the context ends. A Keystone that is down gives no sample.
func (r *registry) run(ctx context.Context) {
	for pause(ctx, sampleEvery) == nil {
		sample, err := r.look(context.WithoutCancel(ctx))
		if err != nil {
			r.ledger.Unsampled()
			continue
		}
		r.ledger.Sample(sample)
	}
}

// look asks what the run's users hold.
func (r *registry) look(ctx context.Context) (ledger.Sample, error) {
	names, err := r.credentials(ctx)
	if err != nil {
		return ledger.Sample{}, err
	}
	return attribute(time.Now(), names, r.owners), nil
}

func (r *registry) credentials(ctx context.Context) ([]string, error) {
	session, err := r.service.Admin(ctx, "soak", r.admin, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, user := range r.users {
		held, err := session.Proof(ctx, user, "")
		if err != nil {
			return nil, err
		}
		for name := range held {
			names = append(names, name)
		}
	}
	return names, nil
}

// attribute assigns credentials to orders by their names.
func attribute(at time.Time, names []string, owners map[string]string) ledger.Sample {
	sample := ledger.Sample{At: at, Live: map[string]int{}}
	for _, owner := range owners {
		sample.Live[owner] = 0
	}
	for _, name := range names {
		owner := ""
		for prefix, candidate := range owners {
			if strings.HasPrefix(name, prefix) {
				owner = candidate
			}
		}
		if owner == "" {
			sample.Strangers = append(sample.Strangers, name)
			continue
		}
		sample.Live[owner]++
	}
	return sample
}

// named lists the users and projects of these names.
func (r *registry) named(ctx context.Context, users, projects []string) ([]string, error) {
	session, err := r.service.Admin(ctx, "soak", r.admin, nil)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range users {
		list, err := session.FindUsers(ctx, name, "")
		if err != nil {
			return nil, err
		}
		for _, user := range list {
			found = append(found, "Keystone user "+user.Name)
		}
	}
	for _, name := range projects {
		list, err := session.FindProjects(ctx, name, "")
		if err != nil {
			return nil, err
		}
		for _, project := range list {
			found = append(found, "Keystone project "+project.Name)
		}
	}
	return found, nil
}
