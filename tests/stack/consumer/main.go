// Command consumer does what a workload does with a delivered clouds.yaml: it logs in to Keystone
// with it and says who it is. It never prints a secret or a token.
//
//	OS_CLIENT_CONFIG_FILE  the clouds.yaml (or --clouds)
//	OS_CLOUD               the cloud in it (or --cloud); the only one when there is just one
//	OS_PROJECT_NAME, OS_PROJECT_DOMAIN_NAME  another scope than the document's
//
// Exit status: 0 logged in, 2 wrong use, 3 Keystone refused (401, 403, 404), 4 no usable answer.
// With --expect-refused, 0 and 3 are exchanged: a Job then succeeds when the credential is dead.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"sigs.k8s.io/yaml"
)

const (
	loggedIn    = 0
	wrongUse    = 2
	refused     = 3
	unreachable = 4
)

// report is everything that is printed.
type report struct {
	Result    string    `json:"result"`
	Error     string    `json:"error,omitempty"`
	AuthURL   string    `json:"authURL,omitempty"`
	UserID    string    `json:"userID,omitempty"`
	User      string    `json:"user,omitempty"`
	Domain    string    `json:"domain,omitempty"`
	ProjectID string    `json:"projectID,omitempty"`
	Project   string    `json:"project,omitempty"`
	Roles     []string  `json:"roles,omitempty"`
	ExpiresAt time.Time `json:"tokenExpiresAt,omitzero"`
}

func main() {
	file := flag.String("clouds", os.Getenv("OS_CLIENT_CONFIG_FILE"), "path of the clouds.yaml")
	cloud := flag.String("cloud", os.Getenv("OS_CLOUD"), "cloud to use, needed when the file has several")
	expectRefused := flag.Bool("expect-refused", false, "succeed (0) when Keystone refuses, fail (3) when the login works")
	timeout := flag.Duration("timeout", 30*time.Second, "how long the login may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()

	result, code := login(ctx, *file, *cloud)
	if *expectRefused {
		switch code {
		case loggedIn:
			code = refused
		case refused:
			code = loggedIn
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	os.Exit(code)
}

func login(ctx context.Context, file, cloud string) (report, int) {
	if cloud == "" {
		only, err := onlyCloud(file)
		if err != nil {
			return report{Result: "usage", Error: err.Error()}, wrongUse
		}
		cloud = only
	}
	auth, _, tlsConfig, err := clouds.Parse(clouds.WithLocations(file), clouds.WithCloudName(cloud))
	if err != nil {
		// A YAML error quotes the line that it stumbled over, so the parser's own words stay out.
		return report{Result: "usage", Error: fmt.Sprintf("%s has no usable cloud %q", file, cloud)}, wrongUse
	}
	if project := os.Getenv("OS_PROJECT_NAME"); project != "" {
		auth.Scope = &gophercloud.AuthScope{
			ProjectName: project,
			DomainName:  cmp.Or(os.Getenv("OS_PROJECT_DOMAIN_NAME"), "Default"),
		}
	}
	auth.AllowReauth = false

	out := report{AuthURL: auth.IdentityEndpoint}
	provider, err := openstack.NewClient(auth.IdentityEndpoint)
	if err != nil {
		out.Result, out.Error = "usage", err.Error()
		return out, wrongUse
	}
	provider.HTTPClient = http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}}
	// Made by hand: the usual constructor looks for Keystone in the catalog, which comes with the login.
	identity := &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: provider.IdentityBase + "v3/"}
	result := tokens.Create(ctx, identity, &auth)
	if result.Err != nil {
		return classify(out, result.Err)
	}
	user, err := result.ExtractUser()
	if err != nil {
		return classify(out, err)
	}
	out.Result, out.UserID, out.User, out.Domain = "logged in", user.ID, user.Name, user.Domain.Name
	if project, err := result.ExtractProject(); err == nil && project != nil {
		out.ProjectID, out.Project = project.ID, project.Name
	}
	if roles, err := result.ExtractRoles(); err == nil {
		for _, role := range roles {
			out.Roles = append(out.Roles, role.Name)
		}
	}
	if token, err := result.ExtractToken(); err == nil {
		out.ExpiresAt = token.ExpiresAt
	}
	return out, loggedIn
}

// classify tells Keystone's own "no" from everything else. The error's text is not printed as it is:
// it quotes the request.
func classify(out report, err error) (report, int) {
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) {
		out.Error = fmt.Sprintf("Keystone answered %d", answer.Actual)
		switch answer.Actual {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			if fromKeystone(answer.Body) {
				out.Result = "refused"
				return out, refused
			}
			out.Error += ", or something before it did"
		}
		out.Result = "unreachable"
		return out, unreachable
	}
	out.Result, out.Error = "unreachable", "no answer from Keystone"
	return out, unreachable
}

// fromKeystone tells Keystone's own error body from a page of a proxy, whose 404 proves nothing.
func fromKeystone(body []byte) bool {
	var answer struct {
		Error *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	return json.Unmarshal(body, &answer) == nil && answer.Error != nil && answer.Error.Code != 0
}

// onlyCloud returns the name of the only cloud in the document.
func onlyCloud(file string) (string, error) {
	if file == "" {
		return "", errors.New("no clouds.yaml: set OS_CLIENT_CONFIG_FILE or --clouds")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var document struct {
		Clouds map[string]any `json:"clouds"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("%s is not YAML", file)
	}
	if len(document.Clouds) != 1 {
		return "", fmt.Errorf("%s holds %d clouds: choose one with OS_CLOUD or --cloud", file, len(document.Clouds))
	}
	for name := range document.Clouds {
		return name, nil
	}
	return "", nil
}
