package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// badFlag says what is wrong with a flag, and what would be right.
func badFlag(cmd *cobra.Command, err error) error {
	if errors.Is(err, errTwice) {
		return usageError{errTwice}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		switch flag := invalid.GetFlag(); flag.Value.Type() {
		case "int32":
			if errors.Is(err, strconv.ErrRange) {
				return usageError{fmt.Errorf("--%s %s: use a number up to %d", flag.Name, invalid.GetValue(), math.MaxInt32)}
			}
			return usageError{fmt.Errorf("--%s %s: use a number", flag.Name, invalid.GetValue())}
		case "duration":
			return usageError{fmt.Errorf("--%s %s: use a time, as in 90s or 2h", flag.Name, invalid.GetValue())}
		}
	}
	return usageError{fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())}
}

// choice checks the value of a flag that has few.
func choice(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usageError{fmt.Errorf("--%s %s: use %s", flag, value, strings.Join(allowed, ", "))}
}
