// Package progress tells a person who waits what is being waited for, for how long already, and how
// long it usually takes.
//
// On a terminal one line is redrawn every second. Elsewhere (a CI log) plain lines are printed every
// fifteen seconds, so that a long build neither looks dead nor fills the log.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// PlainInterval is the time between two lines about the same task where there is no terminal.
const PlainInterval = 15 * time.Second

// Board shows the tasks that run. Its methods may be called from several goroutines.
type Board struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	mu      sync.Mutex
	tasks   []*Task
	started bool
	drawn   bool
}

// Task is one thing that is being waited for.
type Task struct {
	board    *Board
	what     string
	expected time.Duration
	begun    time.Time
	printed  time.Time
	detail   string
}

// New makes a board that writes to f, as a terminal when f is one.
func New(f *os.File) *Board {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return &Board{out: f, terminal: err == nil, now: time.Now}
}

// Say prints a line of its own.
func (b *Board) Say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	fmt.Fprintf(b.out, format+"\n", args...)
}

// Start adds a task. Expected is how long it usually takes, 0 when that is not worth saying.
func (b *Board) Start(what string, expected time.Duration) *Task {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	t := &Task{board: b, what: what, expected: expected, begun: now, printed: now}
	b.tasks = append(b.tasks, t)
	if !b.started {
		b.started = true
		go b.tick()
	}
	return t
}

// Detail sets a short remark that the next line carries.
func (t *Task) Detail(format string, args ...any) {
	t.board.mu.Lock()
	defer t.board.mu.Unlock()
	t.detail = fmt.Sprintf(format, args...)
}

// Done ends the task and prints how long it took; with an error, that it failed.
func (t *Task) Done(err error) {
	b := t.board
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = slices.DeleteFunc(b.tasks, func(other *Task) bool { return other == t })
	b.clear()
	took := round(b.now().Sub(t.begun))
	if err != nil {
		fmt.Fprintf(b.out, "✗ %s: failed after %s\n", t.what, took)
		return
	}
	fmt.Fprintf(b.out, "✓ %s (%s)\n", t.what, took)
}

func (b *Board) tick() {
	for range time.Tick(time.Second) {
		b.mu.Lock()
		b.draw()
		b.mu.Unlock()
	}
}

func (b *Board) draw() {
	now := b.now()
	if b.terminal {
		if len(b.tasks) == 0 {
			return
		}
		parts := make([]string, 0, len(b.tasks))
		for _, t := range b.tasks {
			parts = append(parts, line(t.what, now.Sub(t.begun), t.expected, t.detail))
		}
		b.clear()
		fmt.Fprint(b.out, "… "+strings.Join(parts, " · "))
		b.drawn = true
		return
	}
	for _, t := range b.tasks {
		if now.Sub(t.printed) >= PlainInterval {
			t.printed = now
			fmt.Fprintf(b.out, "… %s\n", line(t.what, now.Sub(t.begun), t.expected, t.detail))
		}
	}
}

// clear removes the redrawn line; the caller holds the lock.
func (b *Board) clear() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}

// line is what is said about a running task.
func line(what string, elapsed, expected time.Duration, detail string) string {
	text := fmt.Sprintf("%s: %s", what, round(elapsed))
	switch {
	case expected > 0 && elapsed <= expected:
		text += fmt.Sprintf(" of about %s", round(expected))
	case expected > 0:
		// Slow machines exist: a number that has been passed is no reason to worry by itself.
		text += fmt.Sprintf(", longer than the usual %s", round(expected))
	}
	if detail != "" {
		text += ", " + detail
	}
	return text
}

func round(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		return strings.TrimSuffix(text, "0s")
	}
	return text
}
