package main

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rule is one that the pipelines of OperatorHub (k8s-operatorhub/community-operators and its OpenShift sibling)
// and the validators they run hold a submission against. What either of them only warns of is an error here.
type rule struct {
	name   string
	broken func(*operator, *version) []string
}

var rules = []rule{
	{"names", brokenNames},
	{"required fields", brokenFields},
	{"icon", brokenIcon},
	{"images", brokenImages},
	{"kinds of manifests", brokenKinds},
	{"owned kinds", brokenOwned},
	{"examples", brokenExamples},
	{"install modes", brokenInstallModes},
	{"deployment", brokenDeployment},
	{"size", brokenSize},
	{"annotations", brokenAnnotations},
	{"dependencies", brokenDependencies},
	{"ci.yaml", brokenConfig},
	{"update graph", brokenGraph},
}

const maxDescription = 135 // characters of the annotation that a tile of the catalog shows

var (
	capabilities = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
	// categories are those that both lists know: the validators' and the pipeline's.
	categories = []string{
		"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Developer Tools", "Database",
		"Integration & Delivery", "Logging & Tracing", "Modernization & Migration", "Monitoring", "Networking",
		"OpenShift Optional", "Security", "Storage", "Streaming & Messaging",
	}
	// kinds are those that OLM installs, without NetworkPolicy, which the pipeline refuses.
	kinds = []string{
		"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ConfigMap",
		"ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleQuickStart", "ConsoleYAMLSample",
		"PodDisruptionBudget", "PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service",
		"ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
	}
	dns1123    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	githubUser = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?$`)
	image      = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?/[a-z0-9._/-]+(:[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})$`)
)

func brokenNames(o *operator, v *version) (broken []string) {
	name, number := at[string](v.csv, "metadata", "name"), at[string](v.csv, "spec", "version")
	if want := o.name + ".v" + number; name != want {
		broken = append(broken, fmt.Sprintf("the ClusterServiceVersion is called %q, %q expected", name, want))
	}
	if v.packageName() != o.name {
		broken = append(broken, fmt.Sprintf("annotations.yaml names the package %q, the folder %q", v.packageName(), o.name))
	}
	if v.folder != number {
		broken = append(broken, fmt.Sprintf("version %q is in the folder %q", number, v.folder))
	}
	if !dns1123.MatchString(name) || len(name) > 63 {
		broken = append(broken, fmt.Sprintf("%q is no DNS label of at most 63 characters", name))
	}
	if err := semverOf(number); err != nil {
		broken = append(broken, fmt.Sprintf("spec.version: %v", err))
	}
	if err := semverOf(at[string](v.csv, "spec", "minKubeVersion")); err != nil {
		broken = append(broken, fmt.Sprintf("spec.minKubeVersion: %v", err))
	}
	return broken
}

func brokenFields(_ *operator, v *version) (broken []string) {
	length := func(field, value string, least, most int) {
		if n := len([]rune(strings.TrimSpace(value))); n < least || n > most {
			broken = append(broken, fmt.Sprintf("%s has %d characters, %d to %d expected", field, n, least, most))
		}
	}
	length("spec.displayName", at[string](v.csv, "spec", "displayName"), 3, 50)
	length("spec.description", at[string](v.csv, "spec", "description"), 20, 1<<16)
	length("spec.provider.name", at[string](v.csv, "spec", "provider", "name"), 3, 100)
	length("the annotation support", v.annotation("support"), 3, 100)
	length("the annotation description", v.annotation("description"), 10, maxDescription)

	if !slices.Contains(capabilities, v.annotation("capabilities")) {
		broken = append(broken, fmt.Sprintf("there is no capability level %q", v.annotation("capabilities")))
	}
	for category := range strings.SplitSeq(v.annotation("categories"), ",") {
		if !slices.Contains(categories, strings.TrimSpace(category)) {
			broken = append(broken, fmt.Sprintf("not both lists of categories know %q", strings.TrimSpace(category)))
		}
	}
	if created := v.annotation("createdAt"); len(created) != len("2006-01-02T15:04:05Z") || !parses(created) {
		broken = append(broken, fmt.Sprintf("createdAt is %q, a time like 2006-01-02T15:04:05Z expected", created))
	}
	if !absolute(v.annotation("repository")) {
		broken = append(broken, fmt.Sprintf("the annotation repository is %q, a URL expected", v.annotation("repository")))
	}
	if words := at[[]any](v.csv, "spec", "keywords"); len(words) == 0 || len(only[string](words)) != len(words) {
		broken = append(broken, "spec.keywords is no list of words")
	}
	return append(broken, brokenContacts(v)...)
}

func brokenContacts(v *version) (broken []string) {
	maintainers, links := v.list("spec", "maintainers"), v.list("spec", "links")
	if len(maintainers) == 0 {
		broken = append(broken, "spec.maintainers is empty")
	}
	for _, maintainer := range maintainers {
		name, address := at[string](maintainer, "name"), at[string](maintainer, "email")
		if _, err := mail.ParseAddress(address); err != nil || name == "" {
			broken = append(broken, fmt.Sprintf("maintainer %q with the address %q: both expected", name, address))
		}
	}
	if len(links) == 0 {
		broken = append(broken, "spec.links is empty")
	}
	for _, link := range links {
		if at[string](link, "name") == "" || !absolute(at[string](link, "url")) {
			broken = append(broken, fmt.Sprintf("link %q to %q: a name and a URL expected", at[string](link, "name"), at[string](link, "url")))
		}
	}
	return broken
}

func parses(created string) bool {
	_, err := time.Parse(time.RFC3339, created)
	return err == nil
}

func absolute(link string) bool {
	parsed, err := url.ParseRequestURI(link)
	return err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != ""
}

func brokenIcon(_ *operator, v *version) []string {
	icons := v.list("spec", "icon")
	if len(icons) != 1 {
		return []string{fmt.Sprintf("%d icons, 1 expected", len(icons))}
	}
	data, err := base64.StdEncoding.DecodeString(at[string](icons[0], "base64data"))
	if err != nil || len(data) == 0 {
		return []string{fmt.Sprintf("no base64 data: %v", err)}
	}
	switch kind := at[string](icons[0], "mediatype"); kind {
	case "image/png", "image/jpeg", "image/gif":
		return nil
	case "image/svg+xml":
		return brokenSVG(data)
	default:
		return []string{fmt.Sprintf("no catalog shows a %q", kind)}
	}
}

// brokenSVG wants a square drawing that needs nothing from elsewhere and runs nothing.
func brokenSVG(data []byte) (broken []string) {
	var drawing struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		ViewBox string   `xml:"viewBox,attr"`
	}
	if err := xml.NewDecoder(bytes.NewReader(data)).Decode(&drawing); err != nil {
		return []string{fmt.Sprintf("no SVG: %v", err)}
	}
	box := strings.Fields(drawing.ViewBox)
	if len(box) != 4 || box[2] != box[3] {
		broken = append(broken, fmt.Sprintf("not square: viewBox is %q", drawing.ViewBox))
	}
	for _, word := range []string{"<script", "href=", "<image", "<foreignObject"} {
		if bytes.Contains(data, []byte(word)) {
			broken = append(broken, "the drawing has "+word)
		}
	}
	return broken
}

func brokenImages(_ *operator, v *version) (broken []string) {
	var related []string
	for _, one := range v.list("spec", "relatedImages") {
		if at[string](one, "name") == "" || !image.MatchString(at[string](one, "image")) {
			broken = append(broken, fmt.Sprintf("related image %q called %q: a name, a registry and a tag or digest expected", at[string](one, "image"), at[string](one, "name")))
		}
		related = append(related, at[string](one, "image"))
	}
	deployed := imagesOf(v.csv)
	for _, one := range deployed {
		if !slices.Contains(related, one.image) {
			broken = append(broken, fmt.Sprintf("spec.relatedImages lacks %q, which the bundle deploys", one.image))
		}
		if !image.MatchString(one.image) || strings.HasSuffix(one.image, ":latest") {
			broken = append(broken, fmt.Sprintf("%q is not an image of one version in a registry", one.image))
		}
	}
	if shown := v.annotation("containerImage"); len(deployed) > 0 && shown != deployed[0].image {
		broken = append(broken, fmt.Sprintf("containerImage is %q, deployed is %q", shown, deployed[0].image))
	}
	return broken
}

func brokenKinds(_ *operator, v *version) (broken []string) {
	accounts := map[string]bool{}
	for _, deployment := range v.list("spec", "install", "spec", "deployments") {
		accounts[at[string](deployment, "spec", "template", "spec", "serviceAccountName")] = true
	}
	for file, manifest := range v.manifests {
		kind, name := at[string](manifest, "kind"), at[string](manifest, "metadata", "name")
		switch {
		case kind == "NetworkPolicy":
			broken = append(broken, file+": the pipeline refuses a NetworkPolicy")
		case !slices.Contains(kinds, kind):
			broken = append(broken, fmt.Sprintf("%s: OLM installs no %q", file, kind))
		case kind == "ServiceAccount" && accounts[name]:
			broken = append(broken, fmt.Sprintf("%s: OLM makes the ServiceAccount %q by itself", file, name))
		case kind == "CustomResourceDefinition" && at[string](manifest, "apiVersion") != "apiextensions.k8s.io/v1":
			broken = append(broken, file+": Kubernetes serves only apiextensions.k8s.io/v1")
		}
		if kind != "ClusterServiceVersion" && at[string](manifest, "metadata", "namespace") != "" {
			broken = append(broken, file+": names a namespace, which is OLM's to choose")
		}
	}
	return broken
}

func brokenOwned(_ *operator, v *version) (broken []string) {
	owned := map[string]bool{}
	for _, kind := range v.list("spec", "customresourcedefinitions", "owned") {
		name := at[string](kind, "name")
		owned[name] = true
		definition, ok := v.definitions[name]
		switch {
		case !ok:
			broken = append(broken, fmt.Sprintf("%s is owned and not in the bundle", name))
			continue
		case definition.Spec.Names.Kind != at[string](kind, "kind"):
			broken = append(broken, fmt.Sprintf("%s is owned as a %q", name, at[string](kind, "kind")))
		case definition.Spec.Conversion != nil:
			broken = append(broken, name+": spec.conversion is OLM's to set")
		}
		for _, field := range []string{"displayName", "description"} {
			if at[string](kind, field) == "" {
				broken = append(broken, fmt.Sprintf("%s has no %s", name, field))
			}
		}
		if len(at[[]any](kind, "resources")) == 0 {
			broken = append(broken, name+" lists no resources")
		}
	}
	for name := range v.definitions {
		if !owned[name] {
			broken = append(broken, fmt.Sprintf("%s is in the bundle and not owned", name))
		}
	}
	return broken
}

func brokenExamples(_ *operator, v *version) (broken []string) {
	examples, err := v.examples()
	if err != nil {
		return []string{fmt.Sprintf("alm-examples: %v", err)}
	}
	shown := map[string]bool{}
	for _, example := range examples {
		group, number, _ := strings.Cut(at[string](example, "apiVersion"), "/")
		shown[group+"/"+at[string](example, "kind")] = true
		known := false
		for _, definition := range v.definitions {
			for _, served := range definition.Spec.Versions {
				known = known || definition.Spec.Group == group && definition.Spec.Names.Kind == at[string](example, "kind") && served.Name == number
			}
		}
		if !known {
			broken = append(broken, fmt.Sprintf("an example of %v %v, which the bundle does not own", example["apiVersion"], example["kind"]))
		}
		for _, field := range []string{"spec", "status"} {
			if len(at[object](example, field)) == 0 {
				broken = append(broken, fmt.Sprintf("the example of %v has no %s: scorecard would have nothing to look at", example["kind"], field))
			}
		}
	}
	for name, definition := range v.definitions {
		if !shown[definition.Spec.Group+"/"+definition.Spec.Names.Kind] {
			broken = append(broken, "no example of "+name)
		}
	}
	return broken
}

func brokenInstallModes(_ *operator, v *version) (broken []string) {
	known := []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"}
	modes := map[string]int{}
	supported := 0
	for _, mode := range v.list("spec", "installModes") {
		name := at[string](mode, "type")
		modes[name]++
		if !slices.Contains(known, name) {
			broken = append(broken, fmt.Sprintf("there is no install mode %q", name))
		}
		if at[bool](mode, "supported") {
			supported++
		}
	}
	for _, name := range known {
		if modes[name] != 1 {
			broken = append(broken, fmt.Sprintf("%s is named %d times", name, modes[name]))
		}
	}
	if supported == 0 {
		broken = append(broken, "none is supported")
	}
	return broken
}

func brokenDeployment(_ *operator, v *version) (broken []string) {
	deployments := v.list("spec", "install", "spec", "deployments")
	if len(deployments) == 0 {
		broken = append(broken, "there is none")
	}
	for _, deployment := range deployments {
		for _, container := range only[object](at[[]any](deployment, "spec", "template", "spec", "containers")) {
			for _, resource := range []string{"cpu", "memory"} {
				if at[string](container, "resources", "requests", resource) == "" {
					broken = append(broken, fmt.Sprintf("container %v requests no %s", container["name"], resource))
				}
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe"} {
				if at[object](container, probe) == nil {
					broken = append(broken, fmt.Sprintf("container %v has no %s", container["name"], probe))
				}
			}
		}
	}
	for _, right := range v.permissions() {
		groups, resources, verbs := only[string](at[[]any](right, "apiGroups")), only[string](at[[]any](right, "resources")), only[string](at[[]any](right, "verbs"))
		ofDefinitions := slices.Contains(groups, "apiextensions.k8s.io") && slices.ContainsFunc(resources, func(r string) bool { return r == "*" || r == "customresourcedefinitions" })
		if ofDefinitions && slices.ContainsFunc(verbs, func(verb string) bool { return slices.Contains([]string{"*", "create", "patch"}, verb) }) {
			broken = append(broken, "the operator may write CRDs, which is OLM's to do")
		}
	}
	return broken
}

func brokenSize(_ *operator, v *version) []string {
	const most = 1 << 20 * 85 / 100 // of a ConfigMap, which a bundle is unpacked into; validators warn from here on
	if v.compressed > most {
		return []string{fmt.Sprintf("%d bytes packed, %d at most", v.compressed, most)}
	}
	return nil
}

func brokenAnnotations(_ *operator, v *version) (broken []string) {
	const prefix = "operators.operatorframework.io."
	for name, want := range map[string]string{
		"bundle.mediatype.v1": "registry+v1",
		"bundle.manifests.v1": "manifests/",
		"bundle.metadata.v1":  "metadata/",
		"test.mediatype.v1":   "scorecard+v1",
		"test.config.v1":      "tests/scorecard/",
	} {
		if got := v.annotations[prefix+name]; got != want {
			broken = append(broken, fmt.Sprintf("%s is %q, %q expected", name, got, want))
		}
	}
	for _, channel := range v.channels() {
		if !slices.ContainsFunc([]string{"candidate", "fast", "stable"}, func(name string) bool { return strings.HasPrefix(channel, name) }) {
			broken = append(broken, fmt.Sprintf("channel %q is not named candidate, fast or stable", channel))
		}
	}
	if first := v.annotations[prefix+"bundle.channel.default.v1"]; !slices.Contains(v.channels(), first) {
		broken = append(broken, fmt.Sprintf("the default channel %q is none of the bundle's", first))
	}
	return broken
}

// brokenDependencies wants none: nothing on OperatorHub meets those that the operator has.
func brokenDependencies(_ *operator, v *version) (broken []string) {
	for _, file := range v.metadata {
		if strings.HasSuffix(file, "/dependencies.yaml") || strings.HasSuffix(file, "/properties.yaml") {
			broken = append(broken, file+": nothing on OperatorHub meets K-ORC or a living External Secrets Operator")
		}
	}
	if len(v.list("spec", "customresourcedefinitions", "required")) > 0 {
		broken = append(broken, "required kinds are a dependency, too")
	}
	return broken
}

func brokenConfig(o *operator, _ *version) (broken []string) {
	if o.config == nil {
		return []string{"there is none"}
	}
	for key, value := range o.config {
		switch key {
		case "updateGraph":
			if value != "replaces-mode" && value != "semver-mode" {
				broken = append(broken, fmt.Sprintf("there is no updateGraph %q", value))
			}
		case "reviewers":
			list, _ := value.([]any)
			for _, user := range list {
				if name, ok := user.(string); !ok || !githubUser.MatchString(name) {
					broken = append(broken, fmt.Sprintf("reviewer %v is no account of GitHub", user))
				}
			}
			if len(list) == 0 {
				broken = append(broken, "reviewers is no list, or empty")
			}
		default:
			broken = append(broken, fmt.Sprintf("the pipeline reads no %q", key))
		}
	}
	if o.config["updateGraph"] == nil {
		broken = append(broken, "updateGraph is missing")
	}
	return broken
}

// brokenGraph wants each channel to be one line of versions without a loop, and no version outside of it.
func brokenGraph(o *operator, v *version) (broken []string) {
	name, replaces := at[string](v.csv, "metadata", "name"), at[string](v.csv, "spec", "replaces")
	byName := map[string]*version{}
	for _, other := range o.versions {
		byName[at[string](other.csv, "metadata", "name")] = other
	}
	if at[string](v.csv, "metadata", "annotations", "olm.skipRange") != "" && replaces == "" {
		broken = append(broken, "olm.skipRange without spec.replaces leaves the skipped versions out of the graph")
	}
	if replaces != "" && byName[replaces] == nil {
		broken = append(broken, fmt.Sprintf("replaces %q, which is not there", replaces))
	}
	seen := map[string]bool{}
	for older := name; byName[older] != nil; older = replacesOf(byName[older]) {
		if seen[older] {
			broken = append(broken, "the versions it replaces end in a loop")
			break
		}
		seen[older] = true
	}
	for _, channel := range v.channels() {
		if heads := o.heads(channel); len(heads) != 1 {
			broken = append(broken, fmt.Sprintf("channel %s has %d heads: %s", channel, len(heads), strings.Join(heads, ", ")))
		}
	}
	return broken
}

func replacesOf(v *version) string { return at[string](v.csv, "spec", "replaces") }
