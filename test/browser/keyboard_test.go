package browser_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

//go:embed focus.js
var focusScript string

// mostTabs is more than any page has elements to stop at, of those that a test walks through.
const mostTabs = 400

// focused is the element with the focus.
type focused struct {
	Name      string `json:"name"`    // as screen readers say it
	Element   string `json:"element"` // for messages
	Index     int    `json:"index"`   // in the document; -1 is the page itself
	Indicator bool   `json:"indicator"`
	Covered   bool   `json:"covered"` // by another element, or outside the window
}

func (p *tab) focused(t *testing.T) focused {
	t.Helper()
	return evaluate[focused](t, p, focusScript)
}

// focusMode is the script in another mode.
func focusMode(mode string) string {
	return strings.Replace(focusScript, "/* MODE */", "return "+mode, 1)
}

// press presses keys, one after another.
func (p *tab) press(t *testing.T, keys string, options ...chromedp.KeyOption) {
	t.Helper()
	p.do(t, chromedp.KeyEvent(keys, options...))
}

// tabTo moves the focus with the Tab key to the next element with a name. It looks where the focus is only after as
// many stops as there are at least before that element.
func (p *tab) tabTo(t *testing.T, name string) {
	t.Helper()
	p.press(t, strings.Repeat(kb.Tab, evaluate[int](t, p, focusMode(fmt.Sprintf("before(%q)", name)))))
	var seen []string
	for range mostTabs {
		p.press(t, kb.Tab)
		at := p.focused(t)
		if at.Name == name {
			return
		}
		seen = append(seen, at.Name)
	}
	require.Failf(t, "the Tab key does not reach it", "%q, but %q", name, seen)
}

// fill replaces the text of the next field with a label.
func (p *tab) fill(t *testing.T, label, text string) {
	t.Helper()
	p.tabTo(t, label)
	p.press(t, "a", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.press(t, kb.Backspace+text)
}

// enter presses Enter on the next link or button with a name, and waits for the page to which it leads.
func (p *tab) enter(t *testing.T, name string) {
	t.Helper()
	p.tabTo(t, name)
	p.follow(t, chromedp.KeyEvent(kb.Enter))
}

// walk presses the Tab key until it leaves the page. It returns the controls that it misses, and those at which a person
// does not see the focus.
func (p *tab) walk(t *testing.T) []string {
	t.Helper()
	// A tile of the overview that moves takes the focus with it, so that the walk would miss those between. A page in the
	// background has no stream.
	evaluate[bool](t, p, `Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }),
		document.dispatchEvent(new Event('visibilitychange')), delete document.hidden`)
	// A field may have the focus already. The walk begins at the top.
	evaluate[bool](t, p, `document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex'), true`)
	missed := evaluate[map[string]string](t, p, focusMode("controls()"))
	var problems []string
	for n := 0; ; n++ {
		require.Less(t, n, mostTabs, "the Tab key does not leave the page")
		p.press(t, kb.Tab)
		at := p.focused(t)
		if at.Index < 0 {
			break
		}
		delete(missed, at.Element)
		if !at.Indicator {
			problems = append(problems, at.Element+": the focus cannot be seen")
		}
		if at.Covered {
			problems = append(problems, at.Element+": it has the focus, but something covers it")
		}
	}
	for _, element := range missed {
		problems = append(problems, element+": the Tab key does not reach it")
	}
	return p.named(t, problems)
}

// fillFocused enters text into the field that has the focus when the page opens.
func (p *tab) fillFocused(t *testing.T, text string) {
	t.Helper()
	// Chromium moves the focus to the field when it draws the page for the first time, which may be after the page loaded.
	require.Eventually(t, func() bool { return p.focused(t).Index != -1 }, patience, 20*time.Millisecond, "no field has the focus")
	p.press(t, text)
}
