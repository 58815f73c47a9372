package browser_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// missing says how to get what the tests need.
const missing = "the tests of pages need Chromium: install it with `apt-get install --no-install-recommends " +
	"chromium-headless-shell`, or set CHROMIUM to the path of a Chromium or Chrome"

// zone is the time zone of the browser. It is not that of any team, because pages use the zone of their team.
const zone = "Pacific/Auckland"

// closers end what the tests share, the newest first.
var closers []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for i := range closers {
		closers[len(closers)-1-i]()
	}
	os.Exit(code)
}

// chromium starts the browser of all tests, once.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Env("TZ="+zone), chromedp.Flag("hide-scrollbars", false),
		chromedp.Flag("lang", "en-US"),        // It decides the order in which people type a date.
		chromedp.Flag("accept-lang", "en-GB")) // It decides the format of the pages.
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to start as root otherwise.
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, stop := chromedp.NewContext(allocator)
	closers = append(closers, stopAllocator, stop)
	if err := chromedp.Do(browser); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return browser, nil
})

func findChromium() (string, error) {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path, nil
	}
	// The first one has no window: it opens a tab in a tenth of the processor time, and a page in a third.
	for _, program := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", errors.New(missing)
}
