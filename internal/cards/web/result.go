package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c5c3/c5c3-operator/internal/answer"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
	"github.com/c5c3/c5c3-operator/internal/verdict"
)

const (
	resultPath      = "/result"
	resultParameter = "result"
	resultLifetime  = time.Hour
)

// result is what came of an answer. A submission leads to a page of its own, for a page that is reloaded must not
// submit again, and what that page says stands in its address. It is signed: nobody can be sent a link that says that
// something was stored. It is no right: whoever opens it has to be who answered, and be allowed to still.
type result struct {
	Request types.NamespacedName
	UID     types.UID
	Person  string
	Probe   verdict.Probe
	Until   time.Time
}

// resultURL is the address of what came of an answer.
func (p *page) resultURL(target target, outcome answer.Outcome) string {
	// Of strings and a time: it cannot fail.
	text, _ := json.Marshal(result{target.Request, target.UID, target.person.Username, outcome.Probe, p.Clock.Now().Add(resultLifetime)})
	encoding := base64.RawURLEncoding
	signed := encoding.EncodeToString(text) + "." + encoding.EncodeToString(p.sign(text))
	return p.base.Path + resultPath + "?" + url.Values{resultParameter: {signed}}.Encode()
}

func (p *page) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, p.results)
	mac.Write(text)
	return mac.Sum(nil)
}

// readResult is what a signed result says, if it is one and for this person.
func (p *page) readResult(signed string, person login.Person) (result, bool) {
	var said result
	text, signature, _ := strings.Cut(signed, ".")
	content, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return said, false
	}
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(mac, p.sign(content)) || json.Unmarshal(content, &said) != nil {
		return result{}, false
	}
	return said, said.Person == person.Username && p.Clock.Now().Before(said.Until)
}

// result says what came of an answer, and where the request stands by now.
func (p *page) result(w http.ResponseWriter, r *http.Request) {
	person, in := p.login.Visitor(r)
	said, right := p.readResult(r.URL.Query().Get(resultParameter), person)
	if !in || !right {
		p.say(w, r, nothingHere)
		return
	}
	t := target{Request: said.Request, UID: said.UID, person: person}
	if !p.authorize(w, r, t) {
		return
	}
	question, err := p.desk.Question(r.Context(), said.Request, said.UID)
	if err != nil && answer.ReasonOf(err) == "" {
		p.fail(w, r, t, err)
		return
	}
	p.render(w, r, http.StatusOK, "result", "The value is stored", storedView(said, question))
}
