package answer

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agents "github.com/c5c3/c5c3-operator/api/agentprimitives/v1alpha1"
	"github.com/c5c3/c5c3-operator/controllers/dependencies/dependenciestest"
	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
)

func encode(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

// TestAgainstAnAPIServer answers as somebody who has the rights of the package's comment and no other.
func TestAgainstAnAPIServer(t *testing.T) {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(clientgoscheme.AddToScheme(scheme))
	must(agents.AddToScheme(scheme))
	config := dependenciestest.StartAPIServer(t, "../..")
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"../../config/crd/agentprimitives"}, ErrorIfPathMissing: true})
	must(err)
	admin, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: answertest.Namespace}}))
	must(admin.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: answertest.Namespace, Name: "answerer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{agents.GroupVersion.Group}, Resources: []string{"credentialupdaterequests", "agentidentities", "sessionuseridentities"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{answertest.Secret}, Verbs: []string{"get", "patch"}},
	}}))
	must(admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: answertest.Namespace, Name: "answerer"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "answerer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
	}))
	open := answertest.NewOpen(time.Now())
	must(open.Create(t.Context(), admin))

	provider := answertest.NewProvider(t)
	as := func(user string) *Desk {
		persons := rest.CopyConfig(config)
		persons.Impersonate.UserName = user
		c, err := client.New(persons, client.Options{Scheme: scheme})
		must(err)
		return &Desk{Client: c, Catalog: provider.Catalog, Prober: provider.Prober, Clock: clock.RealClock{}}
	}
	if _, err := as("mallory").Answer(t.Context(), answertest.RequestKey, open.Request.UID, Submission{Value: answertest.Good}); !apierrors.IsForbidden(err) || ReasonOf(err) != "" {
		t.Errorf("somebody without a right is answered with %v", err)
	}
	if _, err := as("alice").Answer(t.Context(), answertest.RequestKey, open.Request.UID, Submission{Value: answertest.Bad}); ReasonOf(err) != Unconfirmed {
		t.Errorf("a value that the provider refuses is answered with %v", err)
	}
	if _, err := as("alice").Answer(t.Context(), answertest.RequestKey, open.Request.UID, Submission{Value: answertest.Good}); err != nil {
		t.Fatalf("a good one is answered with %v", err)
	}
	secret := &corev1.Secret{}
	must(admin.Get(t.Context(), client.ObjectKeyFromObject(open.Secret), secret))
	if string(secret.Data[answertest.Key]) != answertest.Good || string(secret.Data["other"]) != "left-alone" || len(secret.Data) != 2 {
		t.Errorf("it holds %q", secret.Data)
	}
	if !slices.ContainsFunc(secret.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == FieldManager }) {
		t.Errorf("its managedFields do not say who wrote it: %+v", secret.ManagedFields)
	}
	must(admin.Delete(t.Context(), secret))
	if _, err := as("alice").Answer(t.Context(), answertest.RequestKey, open.Request.UID, Submission{Value: answertest.Good}); ReasonOf(err) != SecretMissing {
		t.Errorf("without its Secret it is answered with %v", err)
	}
}
