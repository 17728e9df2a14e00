// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/c5c3/c5c3-operator/api/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/order"
	"github.com/c5c3/c5c3-operator/internal/clouds"
	"github.com/c5c3/c5c3-operator/internal/keystone"
)

type verifyFlags struct{ authURL, caFile string }

func (p *plugin) verifyCommand() *cobra.Command {
	var flags verifyFlags
	credentials, users := named(order.ApplicationCredentialKind.Name), named(order.UserKind.Name)
	cmd := &cobra.Command{
		Use:   "verify [KIND/]NAME",
		Short: "Log in with a delivered Secret, and say what Keystone answers",
		Long: `Log in from here with the Secret that a KeystoneApplicationCredential, or a KeystoneUser, delivered, and say what
Keystone answers: whose credential it is, for which project and roles, and until when.

It takes the right to read the Secret. A delivered document names no CA bundle, and of a managed Keystone its
address within the cluster: --cacert and --auth-url say what holds here.

Exit status: 0 accepted, 3 Keystone refuses, 4 Keystone gave no usable answer.`,
		Example: `  kubectl c5c3 verify workflow-appcred
  kubectl c5c3 verify kuser/workflow --auth-url https://keystone.example.com/v3 --cacert ca.crt`,
		Args: oneSubject,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 && !strings.Contains(toComplete, "/") {
				return append(p.names(cmd.Context(), credentials, ""), users.short+"/"), cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeSubjects(false, credentials, users)(cmd, args, toComplete)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !strings.Contains(args[0], "/") {
				args = []string{credentials.name, args[0]}
			}
			return p.verify(cmd.Context(), args, flags)
		},
	}
	cmd.Flags().StringVar(&flags.authURL, "auth-url", "", "Keystone's address from here, instead of the delivered one.")
	cmd.Flags().StringVar(&flags.caFile, "cacert", "", "File with PEM certificates to trust Keystone's by in place of the system's.")
	return cmd
}

// verification is what came of a login.
type verification struct {
	reference `json:",inline"`
	Secret    string `json:"secret"`
	AuthURL   string `json:"authURL"`
	Accepted  bool   `json:"accepted"`
	// Answer is OK, or how the login failed: a keystone.Class.
	Answer  keystone.Class `json:"answer"`
	Message string         `json:"message,omitempty"`
	// CredentialID is the id that the Secret carries; empty for a password.
	CredentialID string `json:"credentialID,omitempty"`
	// CredentialName and CredentialExpiresAt are Keystone's word. Without an expiry there is none, or
	// Keystone did not tell.
	CredentialName      string     `json:"credentialName,omitempty"`
	CredentialExpiresAt *time.Time `json:"credentialExpiresAt,omitempty"`
	UserID              string     `json:"userID,omitempty"`
	ProjectID           string     `json:"projectID,omitempty"`
	Roles               []string   `json:"roles,omitempty"`
	TokenExpiresAt      *time.Time `json:"tokenExpiresAt,omitempty"`
	// Notes are what to know beside the answer.
	Notes []string `json:"notes,omitempty"`
}

func (p *plugin) verify(ctx context.Context, args []string, flags verifyFlags) error {
	k, name, err := parseArguments(args)
	switch {
	case err != nil:
		return err
	case name == "" || deliveredName(orderOf(k)) == "":
		return wrongUse("a %s delivers no Secret; a KeystoneApplicationCredential and a KeystoneUser do", k.name)
	}
	var ca []byte
	if flags.caFile != "" {
		if ca, err = os.ReadFile(flags.caFile); err != nil {
			return fmt.Errorf("reading the CA bundle: %w", err)
		}
	}
	cluster, namespace, err := p.cluster()
	if err != nil {
		return err
	}
	o, cloud, err := deliveredCloud(ctx, cluster, reference{k.name, namespace, name})
	if err != nil {
		return err
	}
	if flags.authURL != "" {
		cloud.AuthURL = flags.authURL
	}
	v := verification{reference: referenceTo(o), Secret: deliveredName(o), AuthURL: cloud.AuthURL}
	if cloud.ApplicationCredential != nil {
		v.CredentialID = cloud.ApplicationCredential.ID
	}
	v.compare(o, p.now())
	login := v.logIn(ctx, cloud, ca)
	switch {
	case !p.forPeople():
		return errors.Join(p.print(v), login)
	case errors.Unwrap(login) == nil:
		p.tellVerification(v)
	}
	return login
}

// orderOf is an empty order of a kind, nil for a ControlPlane.
func orderOf(k kind) order.Object {
	o, _ := k.new().(order.Object)
	return o
}

// deliveredCloud reads the document that an order delivered. A Secret of the name that is not the order's
// is not used: whoever put it there decides where a login goes.
func deliveredCloud(ctx context.Context, cluster client.Reader, r reference) (order.Object, clouds.Cloud, error) {
	s, err := read(ctx, cluster, r)
	if err != nil {
		return nil, clouds.Cloud{}, err
	}
	o := s.(order.Object) // the kinds that deliver are orders
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.Namespace, Name: deliveredName(o)}
	err = cluster.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, clouds.Cloud{}, exit{exitNo, fmt.Errorf("%s has delivered nothing: there is no Secret %s; `kubectl c5c3 why` says why", r, key)}
	case err != nil:
		return nil, clouds.Cloud{}, fmt.Errorf("reading Secret %s: %w", key, err)
	case !metav1.IsControlledBy(secret, o):
		return nil, clouds.Cloud{}, exit{exitNo, fmt.Errorf("%s has delivered nothing: Secret %s is not its own", r, key)}
	}
	parsed, err := clouds.Parse(secret.Data[order.CloudsKey])
	if err != nil {
		return nil, clouds.Cloud{}, fmt.Errorf("reading %s of Secret %s: %w", order.CloudsKey, key, err)
	}
	cloud, ok := parsed[order.CloudName]
	if !ok {
		return nil, clouds.Cloud{}, fmt.Errorf("%s of Secret %s has no cloud %q", order.CloudsKey, key, order.CloudName)
	}
	return o, cloud, nil
}

// compare notes where the Secret is not what the order's status tells.
func (v *verification) compare(o order.Object, now time.Time) {
	c, ok := o.(*v1alpha1.KeystoneApplicationCredential)
	switch {
	case !ok:
	case c.Status.CredentialID != v.CredentialID:
		v.Notes = append(v.Notes, fmt.Sprintf("status names another credential, %q: the Secret has not followed yet, or was edited", c.Status.CredentialID))
	case c.Status.CredentialExpiresAt != nil && c.Status.CredentialExpiresAt.Time.Before(now):
		v.Notes = append(v.Notes, "by status it expired "+until(now, c.Status.CredentialExpiresAt.Time)+"; its successor is on the way")
	}
}

// logIn logs in and returns an error with an exit status when Keystone did not accept.
func (v *verification) logIn(ctx context.Context, cloud clouds.Cloud, ca []byte) error {
	session, err := keystone.New(keystone.Config{UserAgent: "kubectl-c5c3"}).Login(ctx, cloud, ca)
	v.Answer = keystone.Classify(err)
	if err != nil {
		return v.refused(err)
	}
	v.Accepted, v.UserID, v.ProjectID, v.TokenExpiresAt = true, session.UserID, session.ProjectID, &session.Expiry
	for _, role := range session.Roles {
		v.Roles = append(v.Roles, role.Name)
	}
	slices.Sort(v.Roles)
	if v.CredentialID != "" {
		v.describe(ctx, session)
	}
	return nil
}

// describe asks Keystone about the credential itself. A restricted one may read its own kind; a Keystone
// whose policy says otherwise has still accepted it.
func (v *verification) describe(ctx context.Context, session *keystone.Session) {
	credentials, err := session.ApplicationCredentials(ctx, session.UserID)
	if err != nil {
		v.Notes = append(v.Notes, "Keystone did not tell when the credential expires: "+err.Error())
		return
	}
	for _, credential := range credentials {
		if credential.ID == v.CredentialID {
			v.CredentialName, v.CredentialExpiresAt = credential.Name, credential.ExpiresAt
		}
	}
}

// refused tells Keystone's no from no answer.
func (v *verification) refused(err error) error {
	var failure *keystone.Error
	if !errors.As(err, &failure) {
		return fmt.Errorf("logging in: %w", err)
	}
	v.Message = failure.Message
	switch v.Answer {
	case keystone.InvalidRequest:
		if failure.StatusCode == 0 {
			// Nothing was sent: what the Secret or the command line says makes no sense.
			return exit{exitFailed, fmt.Errorf("logging in with Secret %s/%s at %q: %s", v.Namespace, v.Secret, v.AuthURL, v.Message)}
		}
	case keystone.TLSVerificationFailed:
		v.Notes = append(v.Notes, "delivered documents carry no CA bundle; name one that holds here with --cacert")
		return exit{status: exitUnanswered}
	case keystone.EndpointUnreachable:
		if inCluster(v.AuthURL) {
			v.Notes = append(v.Notes, "that is an address within a cluster; name the one that holds here with --auth-url")
		}
		return exit{status: exitUnanswered}
	case keystone.NotFound:
		v.Notes = append(v.Notes, "the credential is gone from Keystone; the operator replaces it when it notices, `kubectl c5c3 rotate` does so now")
	case keystone.AuthenticationFailed:
		v.Notes = append(v.Notes, "the credential has expired, the user is disabled or has no role on the project any more, or the Secret is not what was delivered")
	default:
		// Keystone's message has to do.
	}
	return exit{status: exitNo}
}

// inCluster tells whether an address is a Service's, which means nothing outside its cluster.
func inCluster(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (strings.HasSuffix(u.Hostname(), ".svc") || strings.Contains(u.Hostname(), ".svc."))
}

func (p *plugin) tellVerification(v verification) {
	what := "the password"
	if v.CredentialID != "" {
		what = "application credential " + v.CredentialID
	}
	switch {
	case v.Accepted:
		p.printf("Keystone at %s %s %s.\n", v.AuthURL, p.paint(cell{"accepts", green}), what)
	case v.Answer == keystone.EndpointUnreachable || v.Answer == keystone.TLSVerificationFailed:
		p.printf("Keystone at %s gives %s: %s: %s\n", v.AuthURL, p.paint(cell{"no usable answer", yellow}), v.Answer, v.Message)
	default:
		p.printf("Keystone at %s %s %s: %s: %s\n", v.AuthURL, p.paint(cell{"refuses", red}), what, v.Answer, v.Message)
	}
	rows := [][]cell{}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []cell{plain("  " + name), plain(value)})
		}
	}
	add("name", v.CredentialName)
	if v.CredentialExpiresAt != nil {
		add("expires", until(p.now(), *v.CredentialExpiresAt))
	} else if v.CredentialName != "" {
		add("expires", "never")
	}
	add("user", v.UserID)
	add("project", v.ProjectID)
	add("roles", strings.Join(v.Roles, ", "))
	if v.TokenExpiresAt != nil {
		add("token until", v.TokenExpiresAt.UTC().Format(time.RFC3339))
	}
	p.table(rows)
	for _, note := range v.Notes {
		p.note("%s", note)
	}
}
