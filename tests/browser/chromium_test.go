package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long one step of a browser may take on a busy machine.
const patience = 2 * time.Minute

// startChromium starts the browser that all tests share, each in a context of its own: nobody is logged in
// there, and nothing is remembered.
func startChromium() (context.Context, func(), error) {
	command := exec.CommandContext(context.Background(), "../../hack/chromium.sh")
	command.Stderr = os.Stderr
	path, err := command.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("there is no Chromium: %w", err)
	}
	profile, err := os.MkdirTemp("", "c5c3-browser-")
	if err != nil {
		return nil, nil, err
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(path))),
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // its sandbox needs what a container does not give; the only pages are ours
		chromedp.DisableGPU,
		chromedp.WindowSize(width, height),
		// It is to ask nobody for anything but the page.
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(patience),
	)...)
	ctx, leave := chromedp.NewContext(allocator)
	end := func() {
		leave()
		stop()
		_ = os.RemoveAll(profile)
	}
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("starting %s: %w", strings.TrimSpace(string(path)), err)
	}
	return ctx, end, nil
}

// The size of the window, and so of the pictures.
const width, height = 900, 1100

// tab is a tab of a browser that knows nobody.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func newTab(t *testing.T) *tab {
	t.Helper()
	ctx, leave := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(leave)
	// The tab lives as long as the context that it was opened with, so that must be none that ends with a step.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &tab{t, ctx}
}

func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%v\non the page:\n%s", err, b.textOrNothing())
	}
	return result
}

// call has the browser do something for which there is no action.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// leads runs a step that brings up another page, and returns that page's HTTP status.
func (b *tab) leads(step chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, step)
	if err != nil {
		b.t.Fatalf("%v\non the page:\n%s", err, b.textOrNothing())
	}
	return status(response)
}

func status(response *network.Response) int {
	if response == nil {
		return 0
	}
	return int(response.Status)
}

func (b *tab) open(url string) int { b.t.Helper(); return b.leads(chromedp.Navigate(url)) }
func (b *tab) click(selector string) int {
	b.t.Helper()
	return b.leads(chromedp.Click(chromedp.CSS(selector)))
}

// enter puts a text into a field as who pastes it does: one of a thousand characters is as many keys otherwise.
func (b *tab) enter(selector, text string) {
	b.t.Helper()
	run(b, chromedp.Focus(chromedp.CSS(selector)))
	b.paste(text)
}
func (b *tab) paste(text string) {
	b.t.Helper()
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}
func (b *tab) press(key string) { b.t.Helper(); run(b, chromedp.KeyEvent(key)) }

// until waits until an expression is true. For a page that is there without being loaded, because the browser has kept
// it: chromedp's own steps wait for one that loads, and look for elements on the page before.
func (b *tab) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !run(b, chromedp.Evaluate[bool](expression)); {
		if time.Now().After(deadline) {
			b.t.Fatalf("it never holds that %s on the page:\n%s", expression, b.textOrNothing())
		}
	}
}

// text is what somebody reads.
func (b *tab) text() string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string](`document.title + "\n" + document.body.innerText`))
}

func (b *tab) textOrNothing() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.title + "\n" + document.body.innerText`))
	return text
}

// reads fails when one of the words is not there to be read.
func (b *tab) reads(words ...string) {
	b.t.Helper()
	text := b.text()
	for _, word := range words {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			b.t.Errorf("nobody can read %q on:\n%s", word, text)
		}
	}
}

func (b *tab) source() string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string](`document.documentElement.outerHTML`))
}

// prefers has the browser ask for a colour scheme.
func (b *tab) prefers(scheme string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

func (b *tab) withoutJavaScript() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// picture keeps what the page looks like, as bin/browser/NAME.png below the repository's root.
func (b *tab) picture(name string) {
	b.t.Helper()
	png := run(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(pictures, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// tabTo presses the tab key until an element that matches has the focus, and fails when one on the way does
// not show that it has it.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 30 {
		b.press(kb.Tab)
		if focused := run(b, chromedp.Evaluate[string](focusProblem)); focused != "" {
			b.t.Errorf("with the focus on it, %s", focused)
		}
		if run(b, chromedp.Evaluate[bool](fmt.Sprintf(`document.activeElement.matches(%q)`, selector))) {
			return
		}
	}
	b.t.Fatalf("the tab key does not lead to %s on:\n%s", selector, b.textOrNothing())
}

// focusProblem is empty when whoever looks at the focused element sees that it is that: WCAG 2.2, 2.4.7.
const focusProblem = `(() => {
	const at = document.activeElement
	if (!at || at === document.body) return ""
	const style = getComputedStyle(at)
	const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
	return outlined || style.boxShadow !== "none" ? "" : at.outerHTML.slice(0, 120) + " looks as without"
})()`
