package cli

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/trace"
)

// tracing is `trainyard trace`: a job's life as spans.
type tracing struct {
	target
	to string
}

func traceCommand() *cobra.Command {
	var t tracing
	cmd := &cobra.Command{
		Use:   "trace JOB",
		Short: "Print a job's life as a trace, or send it to a collector",
		Long: `Print a job's life as a trace in OTLP's JSON: its attempts, what each replica did in them, and the restarts between. --to
sends it to a collector instead. It reads the record of the local cluster, which need not run. A trace that is sent
twice is the same.`,
		Args: oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args[0]) },
	}
	addTarget(cmd, &t.target)
	cmd.Flags().StringVar(&t.to, "to", "", "the collector's address for OTLP over HTTP, as in http://localhost:4318")
	return cmd
}

func (t *tracing) run(cmd *cobra.Command, name string) error {
	if at, err := url.Parse(t.to); t.to != "" && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return usageError{fmt.Errorf("--to %s: use an address such as http://localhost:4318", t.to)}
	}
	y, j, err := t.look(cmd.Context(), cmd, name)
	if err != nil {
		return err
	}
	if y.Past == nil {
		return errors.New("jobs are recorded on local clusters only, and a trace is made from the record")
	}
	r, err := y.Past.Load(j.Job.Namespace, j.Job.UID)
	if errors.Is(err, record.ErrNone) {
		return fmt.Errorf("job %s is not recorded yet: try again in a second", j.Job.Name)
	}
	if err != nil {
		return err
	}
	spans := trace.Spans(r)
	if t.to != "" {
		if err := trace.Send(cmd.Context(), t.to, spans); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s sent to %s.\n", text.Count(len(spans), "span is", "spans are"), t.to)
		return nil
	}
	body, err := trace.OTLP(spans)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", body)
	return nil
}
