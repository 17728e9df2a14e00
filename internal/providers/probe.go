package providers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/c5c3/c5c3-operator/internal/untrusted"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

// The limits of a probe.
const (
	// ProbeTimeout is how long a provider has to answer.
	ProbeTimeout = 5 * time.Second
	answerLimit  = 4096
	detailLimit  = 200
)

// Prober asks providers whether they accept a credential.
type Prober struct {
	// Transport sends the requests: an egress.Guard.
	Transport http.RoundTripper
}

// Probe asks. The second result is what was answered, on one line and without the credential, for a
// reader. A provider of shape keystone is asked by a login; another one without a verify block is
// ProbeUnsupported; no answer, or one that tells nothing of the credential, is ProbeIndeterminate.
//
// Only 401 rejects: the authentication alone can answer it (RFC 9110 §15.5.2). A working credential gets
// 403 too, and an agent can provoke it.
func (p Prober) Probe(ctx context.Context, provider Provider, credential string) (verdict.Probe, string) {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	if provider.Shape == ShapeKeystone {
		return p.login(ctx, credential)
	}
	v := provider.Verify
	if v == nil {
		return verdict.ProbeUnsupported, ""
	}
	request, err := v.request(ctx, credential)
	if err != nil {
		return verdict.ProbeIndeterminate, "the credential does not fit into a request"
	}
	// Redirects are answers, and tell nothing: followed, they would take the credential to another host,
	// which net/http only prevents for the header Authorization.
	client := http.Client{Transport: p.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return verdict.ProbeIndeterminate, "no answer" // the error holds the URL at most, but is the network's text
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil && response.StatusCode < 300 {
		return verdict.ProbeIndeterminate, "half an answer"
	}
	message := message(body)
	return v.meaning(response.StatusCode, message), describe(response.StatusCode, message, credential)
}

func (v Verify) request(ctx context.Context, credential string) (*http.Request, error) {
	method := v.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, v.Endpoint, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "c5c3-operator")
	for name, value := range v.Headers {
		request.Header.Set(name, value)
	}
	if v.Header != "" {
		request.Header.Set(v.Header, credential)
		return request, nil
	}
	scheme := v.AuthScheme
	if scheme == "" {
		scheme = SchemeBearer
	}
	request.Header.Set("Authorization", string(scheme)+" "+credential)
	return request, nil
}

func (v Verify) meaning(status int, message string) verdict.Probe {
	accepted := v.SuccessStatuses
	if len(accepted) == 0 {
		accepted = []int{http.StatusOK}
	}
	switch {
	case slices.Contains(accepted, status):
		return verdict.ProbeValid
	case strings.Contains(strings.ToLower(message), "rate limit"): // before the status: some say it with 403, some with 401
		return verdict.ProbeIndeterminate
	case status == http.StatusUnauthorized:
		return verdict.ProbeRejected
	case status == http.StatusForbidden:
		return verdict.ProbeForbidden
	default:
		return verdict.ProbeIndeterminate
	}
}

// message is what a JSON answer says in words, wherever the providers of the catalog put it.
func message(body []byte) string {
	var answer struct {
		Message          json.RawMessage `json:"message"`
		Error            json.RawMessage `json:"error"`
		ErrorDescription string          `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{answer.Message, answer.Error} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		var nested struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &nested) == nil && nested.Message != "" {
			return nested.Message
		}
	}
	return answer.ErrorDescription
}

// describe leaves a provider's message out when it quotes the credential or a good part of it.
func describe(status int, message, credential string) string {
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	message = untrusted.Line(message, detailLimit)
	if message == "" || quotes(message, credential) {
		return text
	}
	return untrusted.Line(text+": "+message, detailLimit)
}

// quotes tells whether a text shows eight characters in a row of a credential: OpenAI's answer to a wrong
// key shows its beginning and end.
func quotes(text, credential string) bool {
	const telling = 8
	if len(credential) < telling {
		return credential != "" && strings.Contains(text, credential)
	}
	for i := 0; i+telling <= len(credential); i++ {
		if strings.Contains(text, credential[i:i+telling]) {
			return true
		}
	}
	return false
}
