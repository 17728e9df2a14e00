package launcher

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// bundle is what tells one operator's OLM bundle from another's.
type bundle struct {
	// packageName is the one that the operator's own project uses.
	packageName, displayName, description string
	// crds are folders or files of the component's CRDs.
	crds []string
	// account is the ServiceAccount of the operator's own manifests.
	account string
	// cluster and namespaced are the rules that those manifests give it.
	cluster, namespaced []any
	// deployment is its Deployment, name and spec.
	deploymentName string
	deployment     map[string]any
}

// Bundles writes OLM bundles of K-ORC and ESO, made from their own manifests, into folders named after
// their packages. Neither project publishes one that is alive: OperatorHub has no K-ORC, and its last
// ESO is from 2024.
func (s *Stack) Bundles(ctx context.Context, folder string) error {
	built, err := s.buildNamed(ctx, "korc", "eso")
	if err != nil {
		return err
	}
	s.settings.Builds = map[string]string{}
	for name, b := range built {
		s.settings.Builds[name] = b.Dir
	}
	korc, err := s.korcBundle()
	if err != nil {
		return fmt.Errorf("bundle of K-ORC: %w", err)
	}
	eso, err := s.esoBundle()
	if err != nil {
		return fmt.Errorf("bundle of ESO: %w", err)
	}
	for b, component := range map[*bundle]string{korc: "korc", eso: "eso"} {
		if err := b.write(filepath.Join(folder, b.packageName), strings.TrimPrefix(s.built(component).Version, "v"), s.controllerImage(component)); err != nil {
			return fmt.Errorf("bundle of %s: %w", component, err)
		}
	}
	return nil
}

func (s *Stack) korcBundle() (*bundle, error) {
	manifests := s.built("korc").Path("crds")
	cluster, err := rulesOf(filepath.Join(manifests, "rbac/role.yaml"))
	if err != nil {
		return nil, err
	}
	election, err := rulesOf(filepath.Join(manifests, "rbac/leader_election_role.yaml"))
	if err != nil {
		return nil, err
	}
	documents, err := readDocuments(filepath.Join(manifests, "manager/manager.yaml"))
	if err != nil {
		return nil, err
	}
	deployment := kindOf(documents, "Deployment")
	if deployment == nil {
		return nil, fmt.Errorf("manager/manager.yaml has no Deployment")
	}
	b := &bundle{
		packageName: "orc", displayName: "OpenStack Resource Controller",
		description: "K-ORC manages OpenStack resources by Kubernetes objects.",
		crds:        []string{filepath.Join(manifests, "crd/bases")},
		account:     "orc-controller-manager", cluster: cluster, namespaced: election,
		deploymentName: "orc-controller-manager", deployment: deployment["spec"].(map[string]any),
	}
	// As the process of the group korc has it, and for the reason given there.
	container := b.container()
	container["args"] = append(container["args"].([]any), "--metrics-bind-address=0", "--scope-cache-max-size=1000")
	return b, nil
}

func (s *Stack) esoBundle() (*bundle, error) {
	// What ESO's chart gives to the controllers that run here.
	text, err := manifests.ReadFile("manifests/eso.yaml")
	if err != nil {
		return nil, err
	}
	documents, err := splitDocuments(text)
	if err != nil {
		return nil, err
	}
	b := &bundle{
		packageName: "external-secrets-operator", displayName: "External Secrets Operator",
		description: "ESO's SecretStore, ClusterSecretStore and PushSecret controllers with its Vault provider.",
		crds:        []string{s.built("eso").Path("crds")},
		account:     "external-secrets", cluster: kindOf(documents, "ClusterRole")["rules"].([]any),
		deploymentName: "external-secrets",
	}
	probe := func(path string) map[string]any {
		return map[string]any{"httpGet": map[string]any{"path": path, "port": 8082}, "periodSeconds": 5}
	}
	labels := map[string]any{"app.kubernetes.io/name": "external-secrets"}
	b.deployment = map[string]any{
		"replicas": 1,
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers": []any{map[string]any{
					"name": "external-secrets", "args": []any{"--health-probe-bind-address=:8082"},
					"livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
					"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "64Mi"}},
					"securityContext": map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
						"capabilities": map[string]any{"drop": []any{"ALL"}}},
				}},
			},
		},
	}
	return b, nil
}

func (b *bundle) podSpec() map[string]any {
	return b.deployment["template"].(map[string]any)["spec"].(map[string]any)
}

func (b *bundle) container() map[string]any {
	return b.podSpec()["containers"].([]any)[0].(map[string]any)
}

// write makes the bundle's folder: manifests/ and metadata/.
func (b *bundle) write(folder, version, image string) error {
	b.podSpec()["serviceAccountName"] = b.account
	b.container()["image"], b.container()["imagePullPolicy"] = image, "IfNotPresent"
	var owned []any
	for _, crds := range b.crds {
		files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			documents, err := readDocuments(file)
			if err != nil {
				return err
			}
			crd := kindOf(documents, "CustomResourceDefinition")
			if crd == nil {
				continue
			}
			spec := crd["spec"].(map[string]any)
			// OLM owns the conversion of the CRDs that it installs.
			delete(spec, "conversion")
			name, kind := crd["metadata"].(map[string]any)["name"], spec["names"].(map[string]any)["kind"]
			for _, v := range spec["versions"].([]any) {
				owned = append(owned, map[string]any{
					"name": name, "kind": kind, "version": v.(map[string]any)["name"],
					"displayName": kind, "description": fmt.Sprintf("A %s of %s.", kind, b.displayName),
				})
			}
			if err := writeYAML(filepath.Join(folder, "manifests", filepath.Base(file)), crd); err != nil {
				return err
			}
		}
	}
	install := map[string]any{"deployments": []any{map[string]any{"name": b.deploymentName, "spec": b.deployment}}}
	for key, rules := range map[string][]any{"clusterPermissions": b.cluster, "permissions": b.namespaced} {
		if len(rules) > 0 {
			install[key] = []any{map[string]any{"serviceAccountName": b.account, "rules": rules}}
		}
	}
	modes := map[string]bool{"OwnNamespace": false, "SingleNamespace": false, "MultiNamespace": false, "AllNamespaces": true}
	var installModes []any
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		installModes = append(installModes, map[string]any{"type": mode, "supported": modes[mode]})
	}
	csv := map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": b.packageName + ".v" + version},
		"spec": map[string]any{
			"displayName": b.displayName, "description": b.description, "version": version,
			"provider": map[string]any{"name": b.displayName}, "installModes": installModes,
			"customresourcedefinitions": map[string]any{"owned": owned},
			"install":                   map[string]any{"strategy": "deployment", "spec": install},
		},
	}
	if err := writeYAML(filepath.Join(folder, "manifests", b.packageName+".clusterserviceversion.yaml"), csv); err != nil {
		return err
	}
	const prefix = "operators.operatorframework.io.bundle."
	return writeYAML(filepath.Join(folder, "metadata/annotations.yaml"), map[string]any{"annotations": map[string]any{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": b.packageName, prefix + "channels.v1": "stable", prefix + "channel.default.v1": "stable",
	}})
}

func writeYAML(file string, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return writeFile(file, text, 0o644)
}

// rulesOf returns the rules of the role in a manifest.
func rulesOf(file string) ([]any, error) {
	documents, err := readDocuments(file)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		if rules, ok := document["rules"].([]any); ok {
			return rules, nil
		}
	}
	return nil, fmt.Errorf("%s has no rules", file)
}

func kindOf(documents []map[string]any, kind string) map[string]any {
	for _, document := range documents {
		if document["kind"] == kind {
			return document
		}
	}
	return nil
}

func readDocuments(file string) ([]map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return splitDocuments(text)
}

func splitDocuments(text []byte) ([]map[string]any, error) {
	var documents []map[string]any
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var document map[string]any
		if err := yaml.Unmarshal(part, &document); err != nil {
			return nil, err
		}
		if document != nil {
			documents = append(documents, document)
		}
	}
	return documents, nil
}
