package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// grant is one verb on one resource that a role gives to the account: everywhere when Namespace is empty,
// on objects of any name when Name is.
type grant struct {
	Role, Namespace, Group, Resource, Name, Verb string
}

func (g grant) String() string {
	text := g.Role + ": " + g.Verb + " " + qualified(g.Resource, g.Group)
	if g.Name != "" {
		text += "/" + g.Name
	}
	if g.Namespace != "" {
		text += " in " + g.Namespace
	}
	return text
}

// qualified names a resource as kubectl does.
func qualified(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// use is one thing that the account did, and that RBAC allowed.
type use struct {
	Namespace, Group, Resource, Name, Verb string
	// Unnamed says that RBAC did not know the object's name when it decided: a rule that is limited
	// to names allows no such request.
	Unnamed bool
}

func (g grant) covers(u use) bool {
	return g.Group == u.Group && g.Resource == u.Resource && g.Verb == u.Verb &&
		(g.Namespace == "" || g.Namespace == u.Namespace) && (g.Name == "" || g.Name == u.Name && !u.Unnamed)
}

// rights holds what an account may do against what it did, as the audit log tells: it reports rights that
// were not used, requests that were refused, and lists or watches of all Secrets.
//
// The roles are read as the cluster has them and not from the manifests, so that a second binding that
// somebody added counts too. Rights that the cluster gives to every account are none of the account's.
func rights(arguments []string, w io.Writer) error {
	flags := flag.NewFlagSet("rights", flag.ContinueOnError)
	account := flags.String("account", "", "")
	roles := flags.String("roles", "", "")
	since := time.Time{}
	flags.TextVar(&since, "since", since, "")
	if err := flags.Parse(arguments); err != nil || *account == "" || *roles == "" || flags.NArg() == 0 {
		return errWrongUse
	}
	namespace, name, ok := strings.Cut(*account, "/")
	if !ok {
		return errWrongUse
	}
	grants, problems, err := readGrants(*roles, namespace, name)
	if err != nil {
		return err
	}
	seen := observed{uses: map[use]bool{}, problems: map[string]int{}}
	for _, file := range flags.Args() {
		if err := seen.read(file, "system:serviceaccount:"+namespace+":"+name, since); err != nil {
			return err
		}
	}
	// An audit log that is elsewhere, or a name that nobody has, must not look like modesty.
	if len(grants) == 0 || seen.requests == 0 {
		return fmt.Errorf("%d rights and %d requests of %s were found: there is nothing to judge", len(grants), seen.requests, *account)
	}
	for _, g := range unused(grants, seen.uses) {
		problems = append(problems, "UNUSED "+g.String())
	}
	for _, problem := range slices.Sorted(maps.Keys(seen.problems)) {
		problems = append(problems, fmt.Sprintf("%s (%d times)", problem, seen.problems[problem]))
	}
	for _, problem := range problems {
		fmt.Fprintln(w, problem)
	}
	fmt.Fprintf(w, "%d rights of %s against its %d requests: %d findings\n", len(grants), *account, seen.requests, len(problems))
	if len(problems) > 0 {
		return fmt.Errorf("%w: the rights are not what is needed", errNo)
	}
	return nil
}

// rbacObject is a role or a binding as the API server serves it.
type rbacObject struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct{ APIGroups, Resources, ResourceNames, Verbs, NonResourceURLs []string }
	RoleRef  struct{ Kind, Name string }
	Subjects []struct{ Kind, Name, Namespace string }
}

// readGrants reads `kubectl get roles,rolebindings,clusterroles,clusterrolebindings -A -o json`, and
// returns what is bound to the ServiceAccount itself. What cannot be judged is a problem.
func readGrants(file, namespace, name string) (grants []grant, problems []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	var list struct{ Items []rbacObject }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, nil, fmt.Errorf("%s is no list of roles: %w", file, err)
	}
	for _, binding := range list.Items {
		bound := false
		for _, subject := range binding.Subjects {
			bound = bound || subject.Kind == "ServiceAccount" && subject.Namespace == namespace && subject.Name == name
		}
		if !bound {
			continue
		}
		for _, role := range list.Items {
			if role.Kind != binding.RoleRef.Kind || role.Metadata.Name != binding.RoleRef.Name ||
				role.Kind == "Role" && role.Metadata.Namespace != binding.Metadata.Namespace {
				continue
			}
			more, vague := role.grants(binding.Metadata.Namespace)
			grants, problems = append(grants, more...), append(problems, vague...)
		}
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(grants), problems, nil
}

// grants are the rights that a role gives in a namespace. Nothing ever uses up a wildcard, and a URL is no
// resource; an operator needs neither.
func (o rbacObject) grants(namespace string) (grants []grant, problems []string) {
	title := o.Kind + " " + o.Metadata.Name
	for _, rule := range o.Rules {
		all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
		if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "*") }) || len(rule.NonResourceURLs) > 0 {
			problems = append(problems, "VAGUE "+title+": a rule with a wildcard or a URL; name the resources and verbs that are used")
			continue
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						grants = append(grants, grant{Role: title, Namespace: namespace, Group: group, Resource: resource, Name: name, Verb: verb})
					}
				}
			}
		}
	}
	return grants, problems
}

// unused are the rights that nothing was done with. What a narrow right allows does not speak for a wide
// one, or a right in all namespaces would be taken for used because one namespace needed it. Nor does what
// a wide right is needed for anyway speak for a narrow one: that one is superfluous.
func unused(grants []grant, uses map[use]bool) []grant {
	used := map[grant]bool{}
	narrow := func(g grant) bool { return g.Namespace != "" }
	neededWide := func(g grant) bool { return !narrow(g) && used[g] }
	for u := range uses {
		if allowing := allowing(grants, u); !slices.ContainsFunc(allowing, narrow) {
			for _, g := range allowing {
				used[g] = true
			}
		}
	}
	for u := range uses {
		if allowing := allowing(grants, u); !slices.ContainsFunc(allowing, neededWide) {
			for _, g := range allowing {
				used[g] = used[g] || narrow(g)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(grants), func(g grant) bool { return used[g] })
}

func allowing(grants []grant, u use) []grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g grant) bool { return !g.covers(u) })
}

// auditEvent is a line of the API server's audit log at the level Metadata.
type auditEvent struct {
	Verb, RequestURI         string
	RequestReceivedTimestamp time.Time
	User                     struct{ Username string }
	ObjectRef                *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct {
		Code    int
		Message string
		Details struct{ Causes []struct{ Reason string } }
	}
}

// goingAway tells whether a request is refused because its namespace or its kind is being deleted. Nobody
// may create anything there then, which says nothing about rights.
func (e auditEvent) goingAway() bool {
	for _, cause := range e.ResponseStatus.Details.Causes {
		if cause.Reason == "NamespaceTerminating" {
			return true
		}
	}
	return strings.HasSuffix(e.ResponseStatus.Message, "create not allowed while custom resource definition is terminating")
}

// observed is what the audit log tells of an account.
type observed struct {
	requests int
	uses     map[use]bool
	problems map[string]int
}

// read reads one file. The log holds the requests of everybody, so a line is only decoded when it may be
// the account's.
func (o *observed) read(file, user string, since time.Time) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the API server is still writing the rest
		}
		if err != nil {
			return err
		}
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("%s is no audit log: %w", file, err)
		}
		if event.User.Username == user && !event.RequestReceivedTimestamp.Before(since) {
			o.take(event)
		}
	}
}

func (o *observed) take(event auditEvent) {
	ref := event.ObjectRef
	if ref == nil {
		return // discovery, which every account may do
	}
	o.requests++
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	query := url.Values{}
	if parsed, err := url.ParseRequestURI(event.RequestURI); err == nil {
		query = parsed.Query()
	}
	many := event.Verb == "list" || event.Verb == "watch" || event.Verb == "deletecollection"
	if resource == "secrets" && many && ref.Namespace == "" && query.Get("labelSelector") == "" {
		o.problems["UNSELECTED "+event.Verb+" of the Secrets of all namespaces without a label selector"]++
	}
	if event.ResponseStatus.Code == http.StatusForbidden {
		if event.goingAway() {
			return
		}
		o.problems[fmt.Sprintf("FORBIDDEN %s %s: %s", event.Verb, qualified(resource, ref.APIGroup), event.ResponseStatus.Message)]++
		return
	}
	u := use{Namespace: ref.Namespace, Group: ref.APIGroup, Resource: resource, Name: ref.Name, Verb: event.Verb, Unnamed: event.Verb == "create"}
	o.uses[u] = true
	switch {
	case (event.Verb == "patch" || event.Verb == "update") && event.ResponseStatus.Code == http.StatusCreated:
		// An apply that creates: the API server asks for this right as well, with the name, and logs only the patch.
		u.Verb = "create"
		o.uses[u] = true
	case event.Verb == "watch" && query.Get("sendInitialEvents") == "true":
		// A watch that begins with all there is, as client-go makes it. It lists instead on API servers
		// that cannot do that (before 1.34, or with the feature off), and needs the right there.
		u.Verb = "list"
		o.uses[u] = true
	}
}
