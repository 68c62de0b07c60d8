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
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// durationFlag is an optional duration for a run policy, which has whole seconds.
type durationFlag struct {
	text   string
	length time.Duration
}

func (s *durationFlag) String() string { return s.text }

// Type is the same as of other durations, for help and flagError.
func (*durationFlag) Type() string { return "duration" }

// Set parses the flag's value.
func (s *durationFlag) Set(text string) (err error) {
	s.text = text
	s.length, err = time.ParseDuration(text)
	return err
}

func (s *durationFlag) isSet() bool { return s.text != "" }

func (s *durationFlag) check(flag string, least, most time.Duration) error {
	switch {
	case !s.isSet():
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

// flagError says what is wrong with a flag, and what to use.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, errTwoFiles) {
		return usageError{errTwoFiles}
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

// addSelector adds the flag that selects jobs by their labels.
func addSelector(cmd *cobra.Command, selector *string) {
	cmd.Flags().StringVarP(selector, "selector", "l", "", "only jobs with these labels, as in team=vision")
}

// parseSelector is a selector of labels; an empty one selects all.
func parseSelector(text string) (client.ListOption, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--selector %s: %w", text, err)}
	}
	return client.MatchingLabelsSelector{Selector: selector}, nil
}

// checkChoice checks the value of a flag that allows only some.
func checkChoice(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usageError{fmt.Errorf("--%s %s: use %s", flag, value, strings.Join(allowed, ", "))}
}
