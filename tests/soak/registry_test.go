// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/controllers/order"
)

func TestAttribution(t *testing.T) {
	r := &registry{owners: map[string]string{}}
	r.own("soak", "soak-order-01")
	r.own("soak", "soak-order-02")
	prefix := func(namespace, name string) string {
		return order.ApplicationCredentialKind.Prefix(order.Key{Namespace: namespace, Name: name})
	}
	foreign := prefix("elsewhere", "soak-order-01") + "credential-v1"
	got := attribute(time.Time{}, []string{
		prefix("soak", "soak-order-01") + "credential-v1", prefix("soak", "soak-order-01") + "credential-v2", foreign, "by-hand",
	}, r.owners)
	if want := map[string]int{"soak-order-01": 2, "soak-order-02": 0}; !maps.Equal(got.Live, want) {
		t.Errorf("live is %v, and %v is right", got.Live, want)
	}
	if want := []string{foreign, "by-hand"}; !slices.Equal(got.Strangers, want) {
		t.Errorf("strangers are %v, and %v are", got.Strangers, want)
	}
}

func TestCredentialCloud(t *testing.T) {
	const document = `clouds: {c5c3: {auth: {auth_url: "http://keystone/v3", application_credential_id: "id", application_credential_secret: "s"}}}`
	cloud, err := credentialCloud([]byte(document))
	if err != nil || cloud.ApplicationCredential.ID != "id" {
		t.Errorf("the credential is %v, %v", cloud.ApplicationCredential, err)
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"no credential": `clouds: {c5c3: {auth: {auth_url: "http://keystone/v3", username: "u", password: "p"}}}`,
	} {
		if _, err := credentialCloud([]byte(text)); err == nil {
			t.Errorf("%s passes for a document with a credential", name)
		}
	}
}
