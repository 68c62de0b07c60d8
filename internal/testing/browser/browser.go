// Package browser lets tests look at pages as a person does, with Debian's Chromium.
package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout is how long a page may take to show something. It is generous: the machines are slow and shared.
const timeout = 2 * time.Minute

// Tab is a page of a browser. Whatever it complains about fails the test.
type Tab struct {
	testing.TB
	ctx  context.Context
	site string
}

// Open starts Chromium at an address. It ends with the test.
func Open(t testing.TB, address string) *Tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium: `make setup` installs it")
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	// Root has no sandbox, a container a small /dev/shm, and a server no GPU.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(timeout))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	// It complains about events of newer browsers. What matters is in the errors that Run returns.
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(cancel)
	b := &Tab{TB: t, ctx: ctx, site: at.Scheme + "://" + at.Host}
	b.listen()
	b.Do("opening the link", log.Enable(), chromedp.Navigate(address))
	return b
}

// listen fails the test for errors on the browser's console.
func (b *Tab) listen() {
	var mu sync.Mutex
	var complaints []string
	complain := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		complaints = append(complaints, text)
	}
	chromedp.ListenTarget(b.ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain(e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				for _, arg := range e.Args {
					complain(fmt.Sprintf("console: %s %s", arg.Value, arg.Description))
				}
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				complain(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	b.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(complaints) > 0 {
			b.Errorf("the browser complains:\n%s", strings.Join(complaints, "\n"))
		}
	})
}

// Another opens a path of the same site in another tab of the same browser.
func (b *Tab) Another(path string) *Tab {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.Cleanup(cancel)
	next := &Tab{TB: b.TB, ctx: ctx, site: b.site}
	next.listen()
	next.Do("opening "+path, log.Enable(), chromedp.Navigate(b.site+path))
	return next
}

// Do does something in the browser.
func (b *Tab) Do(what string, actions ...chromedp.Action) {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- chromedp.Run(b.ctx, actions...) }()
	select {
	case err := <-done:
		if err != nil {
			b.Fatalf("%s: %v", what, err)
		}
	case <-time.After(timeout):
		b.Fatalf("%s: the browser does not answer", what)
	}
}

// Eval is the value of an expression in the page.
func (b *Tab) Eval(expression string) (text string) {
	b.Helper()
	b.Do(expression, chromedp.Evaluate("String("+expression+")", &text))
	return text
}

// Shows waits until the page shows all words.
func (b *Tab) Shows(words ...string) {
	b.Helper()
	b.Becomes("document.body.innerText + document.title", func(text string) bool {
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}, fmt.Sprintf("%q", words))
}

// Becomes waits until the value of an expression in the page is as wanted.
func (b *Tab) Becomes(expression string, wanted func(string) bool, what string) {
	b.Helper()
	last, tick := "", time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for end := time.After(timeout); ; {
		if last = b.Eval(expression); wanted(last) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			b.Fatalf("the page at %s never shows %s:\n%s", b.Eval("location.href"), what, last)
		}
	}
}

// GoTo opens a path of the same site.
func (b *Tab) GoTo(path string) {
	b.Helper()
	b.Do("opening "+path, chromedp.Navigate(b.site+path))
}

// Press presses keys.
func (b *Tab) Press(keys string) { b.Helper(); b.Do("pressing "+keys, chromedp.KeyEvent(keys)) }

// Click clicks what a CSS selector finds, when it is visible.
func (b *Tab) Click(selector string) {
	b.Helper()
	b.Do("clicking "+selector, chromedp.Click(selector, chromedp.ByQuery))
}

// ClickButton clicks the button that says something.
func (b *Tab) ClickButton(word string) {
	b.Helper()
	b.Do("clicking "+word, chromedp.Click(fmt.Sprintf("//button[normalize-space()=%q]", word), chromedp.BySearch))
}

// Front brings the tab to the front: pages follow their server only while they can be seen.
func (b *Tab) Front() { b.Helper(); b.Do("looking at it", page.BringToFront()) }

// Draw writes a picture of the page into a directory, unless that is empty. The page must show what a CSS selector finds.
func (b *Tab) Draw(dir, name, theme, selector string) {
	b.Helper()
	if dir == "" {
		return
	}
	var png []byte
	b.Do("drawing", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}), chromedp.Reload(),
		chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.Fatal(err)
	}
}
