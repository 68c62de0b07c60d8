package cli_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// transcript is what a terminal was sent, readable while more comes.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// has returns an error unless it contains all patterns.
func (t *transcript) has(patterns ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range patterns {
		if !regexp.MustCompile(p).Match(t.text.Bytes()) {
			return fmt.Errorf("no %q in\n%s", p, t.text.String())
		}
	}
	return nil
}

// found returns an error unless a text contains all words.
func found(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("no %q in\n%s", word, text)
		}
	}
	return nil
}
