// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	want := time.Date(2026, 11, 30, 21, 36, 22, 0, time.UTC)
	for name, text := range map[string]string{
		"with_microseconds_and_zone":                     `"2026-11-30T21:36:22.000000Z"`,
		"of_a_token_that_ends_with_its_credential":       `"2026-11-30T21:36:22"`,
		"of_an_application_credential_with_microseconds": `"2026-11-30T21:36:22.000000"`,
		"in_another_zone":                                `"2026-11-30T22:36:22+01:00"`,
	} {
		t.Run(name, func(t *testing.T) {
			var got moment
			if err := json.Unmarshal([]byte(text), &got); err != nil || !got.Equal(want) {
				t.Errorf("%s is read as %v (%v)", text, got, err)
			}
		})
	}
	for _, text := range []string{`""`, `"soon"`, `7`, `"2026-11-30"`} {
		if err := json.Unmarshal([]byte(text), new(moment)); err == nil {
			t.Errorf("%s is read as a time", text)
		}
	}
}
