package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// secretsFile holds the values, one JSON secretValue a line, 0600.
const secretsFile = "secrets.jsonl"

// watched are the resources whose every state is written down. Suites delete what they make, and
// Events go with their namespace, so looking once at the end would miss nearly all of it.
var watched = map[string]string{
	"secrets":                        "/api/v1/secrets",
	"events":                         "/apis/events.k8s.io/v1/events",
	"controlplanes":                  "/apis/c5c3.io/v1alpha1/controlplanes",
	"keystoneusers":                  "/apis/c5c3.io/v1alpha1/keystoneusers",
	"keystoneprojects":               "/apis/c5c3.io/v1alpha1/keystoneprojects",
	"keystoneroleassignments":        "/apis/c5c3.io/v1alpha1/keystoneroleassignments",
	"keystoneapplicationcredentials": "/apis/c5c3.io/v1alpha1/keystoneapplicationcredentials",
	"credentialupdaterequests":       "/apis/agentprimitives.authzed.com/v1alpha1/credentialupdaterequests",
	"korc-users":                     "/apis/openstack.k-orc.cloud/v1alpha1/users",
	"korc-projects":                  "/apis/openstack.k-orc.cloud/v1alpha1/projects",
	"korc-roles":                     "/apis/openstack.k-orc.cloud/v1alpha1/roles",
	"korc-domains":                   "/apis/openstack.k-orc.cloud/v1alpha1/domains",
	"korc-applicationcredentials":    "/apis/openstack.k-orc.cloud/v1alpha1/applicationcredentials",
	"pushsecrets":                    "/apis/external-secrets.io/v1alpha1/pushsecrets",
	"secretstores":                   "/apis/external-secrets.io/v1/secretstores",
}

type secretValue struct {
	Where string `json:"where"`
	Value string `json:"value"`
}

// record watches until it is interrupted. The API is reached through `kubectl proxy` on a socket, so
// that every kind of kubeconfig works.
func record(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	socket := flags.String("api", "", "")
	folder := flags.String("out", "", "")
	prefix := flags.String("namespaces", "", "")
	if err := flags.Parse(arguments); err != nil || *socket == "" || *folder == "" {
		return errWrongUse
	}
	if err := os.MkdirAll(*folder, 0o700); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", *socket)
		},
	}}
	var all sync.WaitGroup
	failures := make(chan error, len(watched))
	for name, path := range watched {
		file := filepath.Join(*folder, name+".jsonl")
		take := func(w io.Writer, line []byte) error { _, err := w.Write(append(line, '\n')); return err }
		if name == "secrets" {
			file = filepath.Join(*folder, secretsFile)
			take = newSecretTaker(*prefix).take
		}
		all.Go(func() {
			if err := follow(ctx, client, path, file, take); err != nil {
				failures <- fmt.Errorf("watching %s: %w", name, err)
			}
		})
	}
	all.Wait()
	close(failures)
	var errs []error
	for err := range failures {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// follow watches one resource and begins again whenever the watch ends. Each beginning lists what is
// there, so nothing is missed but what came and went in between. kubectl proxy answers to the name
// localhost only.
func follow(ctx context.Context, client *http.Client, path, file string, take func(io.Writer, []byte) error) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path+"?watch=1", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			switch response.StatusCode {
			case http.StatusForbidden, http.StatusUnauthorized:
				response.Body.Close()
				return fmt.Errorf("%s answers %d", path, response.StatusCode)
			case http.StatusOK:
				lines := bufio.NewReader(response.Body)
				for {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						break
					}
					if err := take(out, line[:len(line)-1]); err != nil {
						return err
					}
				}
			}
			response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // the API server restarts, or a kind is not served yet
		}
	}
	return nil
}

// secretTaker writes each value down once.
type secretTaker struct {
	prefix string
	seen   map[string]bool
}

func newSecretTaker(prefix string) *secretTaker {
	return &secretTaker{prefix: prefix, seen: map[string]bool{}}
}

func (t *secretTaker) take(w io.Writer, line []byte) error {
	var event struct{ Object secretObject }
	if err := json.Unmarshal(line, &event); err != nil {
		return errors.New("a watch of Secrets brought something else")
	}
	secret := event.Object
	if !strings.HasPrefix(secret.Metadata.Namespace, t.prefix) {
		return nil
	}
	for _, found := range valuesOf(secret) {
		if t.seen[found.Value] {
			continue
		}
		t.seen[found.Value] = true
		if err := json.NewEncoder(w).Encode(found); err != nil {
			return err
		}
	}
	return nil
}

// public are the keys whose values are no secrets: they stand in status and in documents that are
// meant to be read.
var public = map[string]bool{
	"application_credential_id": true, "auth_url": true, "username": true, "user_domain_name": true,
	"region_name": true, "ca.crt": true, "tls.crt": true, "cacert": true, "namespace": true,
}

// shortest is the length from which a value counts: a shorter one would be found by chance, and what
// the operator generates has 43 characters.
const shortest = 12

// valuesOf lists what must not be found anywhere. Of a clouds.yaml these are the values of its secret
// fields and not the whole document, most of which is public.
func valuesOf(secret secretObject) []secretValue {
	var values []secretValue
	for key, value := range secret.Data {
		where := secret.Metadata.Namespace + "/" + secret.Metadata.Name + " key " + key
		if key == "clouds.yaml" {
			for _, inner := range cloudSecrets(string(value)) {
				values = append(values, secretValue{where, inner})
			}
			continue
		}
		if text := strings.TrimSpace(string(value)); !public[key] && len(text) >= shortest {
			values = append(values, secretValue{where, text})
		}
	}
	return values
}

// cloudSecrets takes the secret fields out of a clouds.yaml, line by line: a parser of YAML would be
// this program's only dependency.
func cloudSecrets(document string) []string {
	var found []string
	for line := range strings.Lines(document) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch strings.Trim(key, `"' -`) {
		case "password", "application_credential_secret":
		default:
			continue
		}
		if value = strings.Trim(strings.TrimSpace(value), `"',`); ok && len(value) >= shortest {
			found = append(found, value)
		}
	}
	return found
}
