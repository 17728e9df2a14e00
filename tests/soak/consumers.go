// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
	"github.com/c5c3/c5c3-operator/tests/soak/ledger"
)

const (
	// loginEvery is the time between two logins of all consumers together.
	loginEvery = 250 * time.Millisecond
	// atOnce is how many consumers may be under way, as many as the stack's Keystone has threads. Were there
	// no limit, a Keystone that was slow for a moment would be sent more than it can answer, and would go on
	// answering those that have left: it never catches up.
	atOnce = 8
	// readTimeout bounds the reading of a Secret, loginTimeout the answer of Keystone. The latter is longer
	// than anything but a Keystone that hangs: a busy machine is not what is tested.
	readTimeout, loginTimeout = 10 * time.Second, 30 * time.Second
)

// consumers do what workloads do that take their credential from the delivered Secret: read it anew, and
// log in with what it says.
type consumers struct {
	api      client.Client
	keystone *keystone.Service
	ledger   *ledger.Ledger
	random   *rand.Rand
	orders   []client.ObjectKey
}

// run goes round all orders, in a new sequence each time, until the context ends, and returns when the
// last one has its answer.
func (c *consumers) run(ctx context.Context) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	places := make(chan struct{}, atOnce)
	ticker := time.NewTicker(loginEvery)
	defer ticker.Stop()
	for {
		for _, i := range c.random.Perm(len(c.orders)) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			select {
			case <-ctx.Done():
				return
			case places <- struct{}{}:
			}
			// Not with this context: a login that is broken off because the run is over is nobody's fault.
			waiting.Go(func() {
				defer func() { <-places }()
				c.consume(context.WithoutCancel(ctx), c.orders[i])
			})
		}
	}
}

func (c *consumers) consume(ctx context.Context, order client.ObjectKey) {
	attempt := ledger.Attempt{Order: order.Name, Began: time.Now()}
	attempt.Outcome, attempt.Detail = c.attempt(ctx, order, &attempt)
	attempt.Ended = time.Now()
	switch attempt.Outcome {
	case ledger.Refused, ledger.Missing:
		attempt.Detail += "; " + c.status(ctx, order)
		say("%s %s (%s): %s", order.Name, attempt.Outcome, attempt.CredentialID, attempt.Detail)
	case ledger.LoggedIn, ledger.Away, ledger.Unreadable:
	}
	c.ledger.Add(attempt)
}

func (c *consumers) attempt(ctx context.Context, order client.ObjectKey, a *ledger.Attempt) (ledger.Outcome, string) {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	err := c.api.Get(reading, client.ObjectKey{Namespace: order.Namespace, Name: order.Name + "-credentials"}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return ledger.Missing, err.Error()
	case err != nil:
		return ledger.Unreadable, err.Error()
	}
	cloud, err := credentialCloud(secret.Data[clouds.SecretKey])
	if err != nil {
		return ledger.Missing, err.Error()
	}
	a.CredentialID = cloud.ApplicationCredential.ID
	asked := time.Now()
	_, err = c.keystone.Login(ctx, cloud, nil)
	a.Login = time.Since(asked)
	switch keystone.Classify(err) {
	case keystone.OK:
		return ledger.LoggedIn, ""
	case keystone.EndpointUnreachable:
		return ledger.Away, err.Error()
	default:
		return ledger.Refused, err.Error()
	}
}

// credentialCloud is the cloud of a delivered document, which holds just one.
func credentialCloud(document []byte) (clouds.Cloud, error) {
	parsed, err := clouds.Parse(document)
	if err != nil {
		return clouds.Cloud{}, err
	}
	for _, cloud := range parsed {
		if cloud.ApplicationCredential != nil {
			return cloud, nil
		}
	}
	return clouds.Cloud{}, fmt.Errorf("the clouds.yaml holds no application credential")
}

// status is what the order says of itself, for whoever looks into a refusal.
func (c *consumers) status(ctx context.Context, key client.ObjectKey) string {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	order := &v1alpha1.KeystoneApplicationCredential{}
	if err := c.api.Get(ctx, key, order); err != nil {
		return "the order is not readable: " + err.Error()
	}
	s := order.Status
	return fmt.Sprintf("the order's status: generation %d is %s until %s, previous generation %d is %s until %s",
		s.CredentialGeneration, s.CredentialID, s.CredentialExpiresAt, s.PreviousCredentialGeneration, s.PreviousCredentialID, s.PreviousCredentialDeleteAt)
}
