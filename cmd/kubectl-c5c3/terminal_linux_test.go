// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c5c3/c5c3-operator/internal/answer/answertest"
)

// pseudoTerminal is a terminal, and what a person at it types on and sees.
func pseudoTerminal(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return person, terminal
}

// echoes tells whether a terminal shows what is typed.
func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// whenSilent waits until a terminal shows nothing, and does something then.
func whenSilent(t *testing.T, terminal *os.File, do func()) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); echoes(t, terminal); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the terminal shows what is typed")
		}
	}
	do()
}

func TestAValueIsTypedUnseen(t *testing.T) {
	person, terminal := pseudoTerminal(t)
	p, out, notes := testPlugin()
	p.streams.In = terminal
	type result struct {
		value string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := p.value(t.Context(), "New value: ")
		done <- result{value, err}
	}()
	whenSilent(t, terminal, func() { _, _ = person.WriteString("hush-hush\n") })
	got := <-done
	if got.err != nil || got.value != "hush-hush" {
		t.Errorf("it is %q, %v", got.value, got.err)
	}
	if shown := out.String() + notes.String(); strings.Contains(shown, "hush") || !strings.Contains(shown, "New value: ") {
		t.Errorf("it shows %q", shown)
	}
	if !echoes(t, terminal) {
		t.Error("the terminal stays silent")
	}
}

// Somebody who gives up gets the terminal back.
func TestATypedValueIsGivenUp(t *testing.T) {
	_, terminal := pseudoTerminal(t)
	p, _, _ := testPlugin()
	p.streams.In = terminal
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.value(ctx, "New value: ")
		done <- err
	}()
	whenSilent(t, terminal, giveUp)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if !echoes(t, terminal) {
		t.Error("the terminal stays silent")
	}
}

func TestATerminalIsNoPipe(t *testing.T) {
	_, terminal := pseudoTerminal(t)
	p, out, notes := testPlugin()
	p.streams.In = terminal
	if status := run(t.Context(), p, []string{"answer", "cur-1", "--value-stdin"}); status != exitWrongUse || !strings.Contains(notes.String(), "terminal") {
		t.Errorf("it ends with %d and says %s%s", status, out, notes)
	}
}

func init() {
	onATerminal["answer_on_a_terminal"] = (*testCluster).answerOnATerminal
}

// answerOnATerminal: a value that the provider refuses is stored when its owner says so, and not else.
func (c *testCluster) answerOnATerminal(t *testing.T) {
	provider := answertest.NewProvider(t)
	c.transport = provider.Prober.Transport
	line := "answer " + answertest.Request + " --provider-catalog " + catalogOf(t, provider) + " --as " + answerer
	for said, stored := range map[string]string{"yes": answertest.Bad, "no": answertest.Old, "": answertest.Old} {
		c.ask()
		person, terminal := pseudoTerminal(t)
		c.terminal = terminal
		want, words := 0, "Stored in Secret"
		if stored == answertest.Old {
			want, words = exitNo, "Nothing was stored"
		}
		done := make(chan struct{})
		go func() {
			c.wants(t, line, want, "Git does not accept this value", "Type yes", words)
			close(done)
		}()
		whenSilent(t, terminal, func() { _, _ = person.WriteString(answertest.Bad + "\n" + said + "\n") })
		<-done
		if c.stored() != stored {
			t.Errorf("after %q it holds another value", said)
		}
	}
	c.terminal, c.transport = nil, nil
}
