package web

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
	"github.com/c5c3/c5c3-operator/internal/cards/link"
	"github.com/c5c3/c5c3-operator/internal/cards/login"
)

// FuzzForm submits anything as somebody who may answer. Whatever it is: nothing breaks, no value that was entered comes
// back or is logged, and the Secret holds the old value or the whole one that was entered. The cluster is one in memory,
// of which everybody may answer: each process that looks for inputs would start an API server else.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"token=LINK&new-value=" + answertest.Good,
		"token=LINK&confirm=yes&new-value=" + answertest.Bad,
		"token=LINK&new-value=" + answertest.Bad,
		"token=LINK&new-value=++" + answertest.Good + "%0d%0a",
		"token=LINK&new-value=tok_11111%E2%80%AE1111111",
		"token=LINK&new-value=%zz;&&=",
		"token=LINK&token=x&new-value=a&new-value=" + answertest.Good,
		"new-value=" + answertest.Good,
	} {
		f.Add(seed, "application/x-www-form-urlencoded")
	}
	f.Add("--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\nLINK\r\n--b--", "multipart/form-data; boundary=b")
	f.Add("\x00\xff", "")

	const base = "https://cards.example.com"
	key, err := link.NewKey(bytes.Repeat([]byte("k"), link.MinKey))
	if err != nil {
		f.Fatal(err)
	}
	provider := answertest.NewProvider(f)
	f.Fuzz(func(t *testing.T, body, kind string) {
		now := time.Unix(1_790_000_000, 0)
		open := answertest.NewOpen(now)
		var log strings.Builder
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(open.Objects()...).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				switch review := object.(type) {
				case *authenticationv1.TokenReview:
					review.Status.Authenticated, review.Status.User.Username = true, "alice"
				case *authorizationv1.SubjectAccessReview:
					review.Status.Allowed = true
				default:
					t.Errorf("a %T is created", object)
				}
				return nil
			},
		}).Build()
		page, err := New(Config{
			BaseURL: base, Key: key, Client: cluster, Catalog: provider.Catalog, Prober: provider.Prober, Tokens: &TokenLogin{},
			Log: funcr.New(func(prefix, args string) { log.WriteString(prefix + args) }, funcr.Options{}), Clock: testingclock.NewFakePassiveClock(now),
		})
		if err != nil {
			t.Fatal(err)
		}
		token, err := key.Sign(link.Claims{Audience: base, Request: client.ObjectKeyFromObject(open.Request), UID: open.Request.UID, IssuedAt: now, Expires: now.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		post := func(path, body, kind string, cookies ...string) *httptest.ResponseRecorder {
			request := httptest.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
			request.Header.Set("Content-Type", kind)
			for _, cookie := range cookies {
				set, err := http.ParseSetCookie(cookie)
				if err != nil {
					t.Fatal(err)
				}
				request.AddCookie(set)
			}
			answer := httptest.NewRecorder()
			page.ServeHTTP(answer, request)
			log.WriteString(answer.Body.String())
			return answer
		}
		in := post(login.TokenPath, url.Values{link.Parameter: {token}, login.BearerField: {"bearer"}}.Encode(), "application/x-www-form-urlencoded")
		body = strings.ReplaceAll(body, "LINK", token)
		response := post(link.Path, body, kind, in.Header().Values("Set-Cookie")...)
		switch response.Code {
		case http.StatusSeeOther, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		default:
			t.Errorf("it is answered with %d", response.Code)
		}
		form, _ := url.ParseQuery(body)
		entered := strings.TrimSpace(form.Get(valueField))
		if strings.Contains(entered, "tok_") && len(entered) > len("tok_") && strings.Contains(log.String()+response.Header().Get("Location"), entered) {
			t.Errorf("%q comes back or is logged", entered)
		}
		secret := &corev1.Secret{}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(open.Secret), secret); err != nil {
			t.Fatal(err)
		}
		stored := string(secret.Data[answertest.Key])
		if stored != answertest.Old && (stored != entered || response.Code != http.StatusSeeOther) || len(secret.Data) != 2 || string(secret.Data["other"]) != "left-alone" {
			t.Errorf("the Secret holds %q", secret.Data)
		}
	})
}
