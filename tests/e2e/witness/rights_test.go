package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// operatorRoles binds an account to a ClusterRole and a Role, among others that are not its own.
const operatorRoles = `{"items": [
	{"kind": "ClusterRole", "metadata": {"name": "wide"}, "rules": [
		{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "create"]},
		{"apiGroups": ["c5c3.io"], "resources": ["keystoneusers/status"], "verbs": ["patch"]}]},
	{"kind": "Role", "metadata": {"name": "narrow", "namespace": "system"}, "rules": [
		{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
		{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["operator"], "verbs": ["update"]}]},
	{"kind": "Role", "metadata": {"name": "narrow", "namespace": "elsewhere"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
	{"kind": "ClusterRole", "metadata": {"name": "everybody"}, "rules": [{"nonResourceURLs": ["/api"], "verbs": ["get"]}]},
	{"kind": "ClusterRoleBinding", "metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "wide"},
		"subjects": [{"kind": "ServiceAccount", "namespace": "system", "name": "operator"}]},
	{"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "system"}, "roleRef": {"kind": "Role", "name": "narrow"},
		"subjects": [{"kind": "ServiceAccount", "namespace": "system", "name": "operator"}]},
	{"kind": "ClusterRoleBinding", "metadata": {"name": "c"}, "roleRef": {"kind": "ClusterRole", "name": "everybody"},
		"subjects": [{"kind": "Group", "name": "system:authenticated"}]}]}`

// audited is a line of the audit log, with a time, an account and a status, as the API server writes it.
func audited(verb, uri, objectRef, status string) string {
	return `{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":"` + uri + `","verb":"` + verb +
		`","user":{"username":"system:serviceaccount:system:operator"},"objectRef":` + objectRef +
		`,"responseStatus":` + status + `,"requestReceivedTimestamp":"2026-01-01T12:00:00.123456Z"}` + "\n"
}

const labelled = "?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dc5c3-operator"

// needed is a log in which every right of operatorRoles is used.
var needed = []string{
	audited("get", "/api/v1/namespaces/n/secrets/s", `{"resource":"secrets","namespace":"n","name":"s"}`, `{"code":404}`),
	audited("watch", "/api/v1/secrets"+labelled+"&sendInitialEvents=true", `{"resource":"secrets"}`, `{"code":200}`),
	audited("patch", "/api/v1/namespaces/n/secrets/s", `{"resource":"secrets","namespace":"n","name":"s"}`, `{"code":201}`),
	audited("patch", "/apis/c5c3.io/v1alpha1/namespaces/n/keystoneusers/u/status",
		`{"apiGroup":"c5c3.io","resource":"keystoneusers","subresource":"status","namespace":"n","name":"u"}`, `{"code":200}`),
	audited("create", "/apis/coordination.k8s.io/v1/namespaces/system/leases",
		`{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"system","name":"operator"}`, `{"code":201}`),
	audited("update", "/apis/coordination.k8s.io/v1/namespaces/system/leases/operator",
		`{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"system","name":"operator"}`, `{"code":409}`),
}

func judged(t *testing.T, roles string, log []string, arguments ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{"roles": roles, "audit": strings.Join(log, "")}
	for name, text := range files {
		files[name] = filepath.Join(folder, name)
		if err := os.WriteFile(files[name], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	all := append([]string{"--account", "system/operator", "--roles", files["roles"]}, arguments...)
	err := rights(append(all, files["audit"]), &out)
	return out.String(), err
}

func TestRights(t *testing.T) {
	without := func(part string) []string {
		var rest []string
		for _, line := range needed {
			if !strings.Contains(line, part) {
				rest = append(rest, line)
			}
		}
		return rest
	}
	with := func(line string) []string { return append([]string{line}, needed...) }
	widened := func(rule string) string {
		return strings.Replace(operatorRoles, `"rules": [`, `"rules": [`+rule+`,`, 1)
	}
	secret := `{"resource":"secrets"}`
	for name, c := range map[string]struct {
		roles string
		log   []string
		want  string // empty: nothing is wrong
	}{
		"every_right_is_used": {operatorRoles, needed, ""},
		"a_right_is_unused":   {operatorRoles, without("keystoneusers"), "UNUSED ClusterRole wide: patch keystoneusers/status.c5c3.io"},
		"an_apply_that_changes_is_no_create": {operatorRoles, append(without(`"code":201`), needed[4],
			audited("patch", "/api/v1/namespaces/n/secrets/s", `{"resource":"secrets","namespace":"n","name":"s"}`, `{"code":200}`)),
			"UNUSED ClusterRole wide: create secrets"},
		"a_watch_that_begins_empty_is_no_list": {operatorRoles, append(without("sendInitialEvents"),
			audited("watch", "/api/v1/secrets"+labelled, secret, `{"code":200}`)), "UNUSED ClusterRole wide: list secrets"},
		"another_name_does_not_use_a_right": {operatorRoles, append(without(`"verb":"update"`),
			strings.ReplaceAll(needed[5], `"name":"operator"`, `"name":"other"`)), "UNUSED Role narrow: update leases.coordination.k8s.io/operator in system"},
		"a_right_in_all_namespaces_that_one_needs": {widened(`{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}`), needed,
			"UNUSED ClusterRole wide: create leases.coordination.k8s.io\n"},
		"a_right_in_one_namespace_that_all_need": {strings.Replace(operatorRoles, `{"apiGroups": ["coordination.k8s.io"]`,
			`{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}, {"apiGroups": ["coordination.k8s.io"]`, 1),
			with(strings.ReplaceAll(needed[0], `"namespace":"n"`, `"namespace":"system"`)), "UNUSED Role narrow: get secrets in system"},
		"a_wildcard": {widened(`{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}`), needed, "VAGUE ClusterRole wide"},
		"a_url":      {widened(`{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}`), needed, "VAGUE ClusterRole wide"},
		"a_right_is_missing": {operatorRoles, with(audited("delete", "/api/v1/namespaces/n/secrets/s", `{"resource":"secrets","namespace":"n","name":"s"}`,
			`{"code":403,"message":"secrets \"s\" is forbidden"}`)), `FORBIDDEN delete secrets: secrets "s" is forbidden (1 times)`},
		"a_refused_request_uses_no_right": {operatorRoles, append(without("keystoneusers"),
			strings.Replace(needed[3], `{"code":200}`, `{"code":403}`, 1)), "UNUSED ClusterRole wide: patch keystoneusers/status.c5c3.io\nFORBIDDEN patch"},
		"a_namespace_that_is_going_away": {operatorRoles, with(audited("create", "/api/v1/namespaces/n/secrets", `{"resource":"secrets","namespace":"n"}`,
			`{"code":403,"details":{"causes":[{"reason":"NamespaceTerminating"}]}}`)), ""},
		"a_kind_that_is_going_away": {operatorRoles, with(audited("patch", "/api/v1/namespaces/n/secrets/s", `{"resource":"secrets","namespace":"n"}`,
			`{"code":403,"message":"secrets \"s\" is forbidden: create not allowed while custom resource definition is terminating"}`)), ""},
		"all_secrets_listed":               {operatorRoles, with(audited("list", "/api/v1/secrets?limit=500", secret, `{"code":200}`)), "UNSELECTED list"},
		"all_secrets_watched":              {operatorRoles, with(audited("watch", "/api/v1/secrets?labelSelector=&watch=true", secret, `{"code":200}`)), "UNSELECTED watch"},
		"secrets_of_one_namespace":         {operatorRoles, with(audited("list", "/api/v1/namespaces/n/secrets", `{"resource":"secrets","namespace":"n"}`, `{"code":200}`)), ""},
		"another_account":                  {operatorRoles, with(strings.Replace(audited("list", "/api/v1/secrets", secret, `{"code":403}`), "system:operator", "system:other", 1)), ""},
		"somebody_who_acts_as_the_account": {operatorRoles, with(strings.Replace(audited("list", "/api/v1/secrets", secret, `{"code":403}`), `"user":{"username"`, `"user":{"username":"admin"},"impersonatedUser":{"username"`, 1)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := judged(t, c.roles, c.log, "--since", "2026-01-01T12:00:00Z")
			if errors.Is(err, errNo) != (c.want != "") || (err != nil) != (c.want != "") {
				t.Fatalf("expected a finding: %v, got error %v and output\n%s", c.want != "", err, out)
			}
			if !strings.Contains(out, c.want) {
				t.Errorf("the output lacks %q:\n%s", c.want, out)
			}
			if found := strings.Count(out, "\n") - 1; c.want != "" && found != 1+strings.Count(strings.TrimSpace(c.want), "\n") {
				t.Errorf("%d findings:\n%s", found, out)
			}
		})
	}
}

func TestRights_of_nobody_are_no_success(t *testing.T) {
	for name, c := range map[string]struct {
		roles string
		log   []string
		since string
	}{
		"no_roles":             {`{"items": []}`, needed, "2026-01-01T12:00:00Z"},
		"no_requests":          {operatorRoles, nil, "2026-01-01T12:00:00Z"},
		"requests_of_long_ago": {operatorRoles, needed, "2026-01-01T12:00:01Z"},
		"a_damaged_log":        {operatorRoles, []string{"{system:serviceaccount:system:operator\n"}, "2026-01-01T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := judged(t, c.roles, c.log, "--since", c.since); err == nil || errors.Is(err, errNo) || errors.Is(err, errWrongUse) {
				t.Errorf("nothing was judged, and the answer is %v", err)
			}
		})
	}
}
