// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"encoding/json"
	"errors"
	"time"
)

// layouts are how Keystone writes a moment. Most carry a zone. An application credential's expiry
// does not and means UTC, and neither does the expiry of a token that ends with its credential (seen
// with Keystone 22).
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999"}

// moment is a time as Keystone writes it.
type moment struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			m.Time = at.UTC()
			return nil
		}
	}
	return errors.New("not a time as Keystone writes it")
}
