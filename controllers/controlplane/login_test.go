package controlplane

import (
	"testing"
	"time"

	"github.com/c5c3/c5c3-operator/internal/keystone"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func failure(class keystone.Class) error { return &keystone.Error{Operation: "login", Class: class} }

func TestLogin_a_refused_password_is_tried_less_and_less(t *testing.T) {
	var (
		a     attempt
		now   = noon
		waits []time.Duration
	)
	for range 8 {
		a = a.then("document", now, failure(keystone.AuthenticationFailed), time.Hour)
		waits = append(waits, a.next().Sub(now))
		now = a.next()
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute}
	for i := range want {
		if waits[i] != want[i] {
			t.Errorf("wait %d is %s, want %s", i, waits[i], want[i])
		}
	}
}

func TestLogin_due(t *testing.T) {
	refusedOften := attempt{}
	for range 10 {
		refusedOften = refusedOften.then("document", noon, failure(keystone.AuthenticationFailed), time.Hour)
	}
	accepted := attempt{}.then("document", noon, nil, time.Hour)
	silent := attempt{}.then("document", noon, failure(keystone.EndpointUnreachable), time.Hour)
	asked := attempt{}.then("document", noon, &keystone.Error{Class: keystone.EndpointUnreachable, StatusCode: 503, RetryAfter: time.Minute}, time.Hour)
	for name, c := range map[string]struct {
		last     attempt
		document string
		after    time.Duration
		due      bool
	}{
		"the_first_time":                         {attempt{}, "document", 0, true},
		"another_document_at_once":               {refusedOften, "other", 0, true},
		"not_a_refused_one_so_soon":              {refusedOften, "document", 119 * time.Second, false},
		"a_refused_one_after_two_minutes":        {refusedOften, "document", 2 * time.Minute, true},
		"not_an_accepted_one":                    {accepted, "document", 29 * time.Minute, false},
		"an_accepted_one_at_the_audit":           {accepted, "document", 91 * time.Minute, true},
		"another_document_than_the_accepted_one": {accepted, "other", 0, true},
		"not_a_silent_Keystone_within_10s":       {silent, "document", 9 * time.Second, false},
		"a_silent_Keystone_after_10s":            {silent, "document", 10 * time.Second, true},
		"not_while_Keystone_asks_for_patience":   {asked, "document", 59 * time.Second, false},
		"after_the_patience_it_asked_for":        {asked, "document", time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.last.due(c.document, noon.Add(c.after)); got != c.due {
				t.Errorf("due is %v", got)
			}
		})
	}
}

func TestLogin_without_an_audit_an_accepted_document_is_never_tried_again(t *testing.T) {
	accepted := attempt{}.then("document", noon, nil, 0)
	if accepted.due("document", noon.Add(10000*time.Hour)) || !accepted.next().IsZero() {
		t.Errorf("it is: %+v", accepted)
	}
}

func TestLogin_another_document_starts_the_back_off_anew(t *testing.T) {
	a := attempt{}
	for range 10 {
		a = a.then("old", noon, failure(keystone.AuthenticationFailed), time.Hour)
	}
	if a = a.then("new", noon, failure(keystone.AuthenticationFailed), time.Hour); a.next().Sub(noon) != 10*time.Second {
		t.Errorf("waits %s", a.next().Sub(noon))
	}
}
