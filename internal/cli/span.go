package cli

import (
	"fmt"
	"time"
)

// span is a flag for a time that a run policy has in whole seconds, or not at all.
type span struct {
	text   string
	length time.Duration
}

func (s *span) String() string { return s.text }

// Type is that of flags of durations.
func (*span) Type() string { return "duration" }

// Set takes what a person typed.
func (s *span) Set(text string) (err error) {
	s.text = text
	s.length, err = time.ParseDuration(text)
	return err
}

func (s *span) given() bool { return s.text != "" }

func (s *span) check(flag string, least, most time.Duration) error {
	switch {
	case !s.given():
		return nil
	case s.length < least:
		return fmt.Errorf("--%s %s: use at least %s", flag, s.text, least)
	case s.length > most:
		return fmt.Errorf("--%s %s: use at most %s", flag, s.text, most)
	case s.length%time.Second != 0:
		return fmt.Errorf("--%s %s: use whole seconds", flag, s.text)
	}
	return nil
}
