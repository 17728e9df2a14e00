package browser

import (
	"encoding/json"
	"slices"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// accessible looks at the page as a screen reader does, and at its colours as somebody with weak eyes.
func (b *tab) accessible() {
	b.t.Helper()
	for _, problem := range slices.Concat(b.tree(), b.forms(), b.document()) {
		b.t.Errorf("%s: %s", run(b, chromedp.Title()), problem)
	}
	for _, scheme := range []string{"dark", "light"} {
		b.prefers(scheme)
		for _, problem := range run(b, chromedp.Evaluate[[]string](contrastProblems)) {
			b.t.Errorf("%s, %s: %s", run(b, chromedp.Title()), scheme, problem)
		}
	}
}

// named are roles that somebody operates, which are nothing without a name (WCAG 2.2, 4.1.2). A form is not among
// them: one without a name is no landmark, and only groups what is named.
var named = []string{"textbox", "button", "link", "checkbox", "radio"}

// tree looks at Chromium's accessibility tree, which is what it hands to a screen reader.
func (b *tab) tree() (problems []string) {
	b.t.Helper()
	tree := call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	count := map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored {
			continue
		}
		role, name := word(node.Role), word(node.Name)
		count[role]++
		for _, property := range node.Properties {
			if role == "heading" && property.Name == "level" && string(property.Value.Value) == "1" {
				count["heading 1"]++
			}
		}
		if slices.Contains(named, role) && name == "" {
			problems = append(problems, "a "+role+" has no name")
		}
	}
	for role, what := range map[string]string{"main": "main landmark", "heading 1": "heading of level 1"} {
		if count[role] != 1 {
			problems = append(problems, "it has not exactly one "+what)
		}
	}
	return problems
}

func word(value *accessibility.Value) string {
	if value == nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(value.Value, &text)
	return text
}

// forms is what Chromium itself complains of in forms: labels without fields, fields without names, and words
// in autocomplete that mean nothing.
func (b *tab) forms() (problems []string) {
	b.t.Helper()
	found := call(b, audits.CheckFormsIssues, cdp.Empty{})
	for _, issue := range found.FormIssues {
		problems = append(problems, "a form: "+string(issue.ErrorType)+" "+issue.ViolatingNodeAttribute)
	}
	return problems
}

func (b *tab) document() (problems []string) {
	b.t.Helper()
	if run(b, chromedp.Evaluate[string](`document.documentElement.lang`)) == "" {
		problems = append(problems, "it does not say its language")
	}
	if run(b, chromedp.Title()) == "" {
		problems = append(problems, "it has no title")
	}
	if run(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > document.documentElement.clientWidth`)) {
		problems = append(problems, "one has to scroll sideways")
	}
	return problems
}

// contrastProblems are texts that stand out from what is behind them by less than WCAG 2.2, 1.4.3 asks for:
// 4.5 to 1, and 3 to 1 for large ones. Colours are computed by drawing them, since a stylesheet may give them in
// ways that would have to be understood.
const contrastProblems = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true})
	const drawn = colours => {
		canvas.clearRect(0, 0, 1, 1)
		for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1) }
		return [...canvas.getImageData(0, 0, 1, 1).data]
	}
	const luminance = rgb => {
		const [r, g, b] = rgb.slice(0, 3).map(c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 })
		return 0.2126 * r + 0.7152 * g + 0.0722 * b
	}
	const behind = element => {
		const layers = []
		for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor)
		const dark = matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark")
		return [dark ? "rgb(18, 18, 18)" : "white", ...layers]
	}
	const problems = new Set()
	const judge = (element, text, colour) => {
		const style = getComputedStyle(element)
		const layers = behind(element)
		const [one, other] = [luminance(drawn([...layers, colour])), luminance(drawn(layers))]
		const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
		const size = parseFloat(style.fontSize), bold = parseInt(style.fontWeight) >= 700
		const wanted = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5
		if (ratio < wanted) problems.add(JSON.stringify(text.slice(0, 40)) + " has a contrast of " + ratio.toFixed(2) + " and needs " + wanted)
	}
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	while (texts.nextNode()) {
		const element = texts.currentNode.parentElement
		if (texts.currentNode.data.trim() && element.checkVisibility()) judge(element, texts.currentNode.data.trim(), getComputedStyle(element).color)
	}
	for (const field of document.querySelectorAll("input, textarea")) {
		if (field.checkVisibility()) judge(field, field.name, getComputedStyle(field).color)
	}
	return [...problems]
})()`
