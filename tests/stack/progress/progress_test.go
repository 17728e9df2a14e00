package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		elapsed, expected time.Duration
		detail, want      string
	}{
		"within the expected time":  {90 * time.Second, 20 * time.Minute, "", "building kube: 1m30s of about 20m"},
		"longer than expected":      {25 * time.Minute, 20 * time.Minute, "", "building kube: 25m, longer than the usual 20m"},
		"nothing is expected":       {1500 * time.Millisecond, 0, "", "building kube: 1.5s"},
		"with a remark":             {12 * time.Second, 0, "40 packages compiled", "building kube: 12s, 40 packages compiled"},
		"the seconds are not lost":  {601 * time.Second, 0, "", "building kube: 10m1s"},
		"a full hour reads as such": {time.Hour, 0, "", "building kube: 1h0m"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := line("building kube", c.elapsed, c.expected, c.detail); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	board := &Board{out: &out, now: func() time.Time { return now }, started: true}
	task := board.Start("building kube", time.Minute)

	for range 60 {
		now = now.Add(time.Second)
		board.draw()
	}
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("a minute printed %d lines, want one every 15 s:\n%s", got, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("terminal codes in a log")
	}
	out.Reset()
	task.Done(errors.New("no"))
	if got := out.String(); !strings.HasPrefix(got, "✗ building kube: failed after 1m") {
		t.Errorf("a failure reads %q", got)
	}
	out.Reset()
	now = now.Add(time.Minute)
	board.draw()
	if out.Len() != 0 {
		t.Errorf("a finished task still prints: %q", out.String())
	}
}
