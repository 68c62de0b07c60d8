package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/simulation"
)

// defaultTraining is how long a replica trains without --trains.
const defaultTraining = 10 * time.Minute

// simulate is `trainyard simulate`: the life of a job under its run policy, with a virtual clock and without a cluster.
type simulate struct {
	file, script, output string
	pace                 simulation.Pace
}

func simulateCommand() *cobra.Command {
	var s simulate
	cmd := &cobra.Command{
		Use:   "simulate -f job.yaml ['worker-1 exits 137 at 30s' …]",
		Short: "Simulate a job under its run policy, with the failures you choose",
		Long: `Simulate a job under its run policy, with the failures you choose. The operator's own rules decide, and the clock jumps
from one event to the next. No cluster is needed.

Say what happens in sentences, as arguments or one per line in a file (--script):

` + simulation.Grammar + `

A replica to which nothing happens trains for --trains and exits 0. The default is 10 minutes, or half the job's deadline
if that is less.`,
		Example: `  trainyard simulate -f job.yaml 'worker-1 exits 1 after 10m' --trains 1h`,
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	addFile(cmd, &s.file, "the manifest")
	flags := cmd.Flags()
	flags.StringVar(&s.script, "script", "", `a file of sentences; "-" reads standard input`)
	flags.StringVarP(&s.output, "output", "o", "text", "text, json with times in seconds, or svg for a picture")
	flags.DurationVar(&s.pace.Trains, "trains", defaultTraining, "how long a replica trains until it is done")
	flags.Lookup("trains").DefValue = "10m, or half the deadline"
	flags.DurationVar(&s.pace.Starts, "starts", 2*time.Second, "how long a pod takes to start")
	flags.DurationVar(&s.pace.Stops, "stops", time.Second, "how long a pod takes to stop")
	flags.DurationVar(&s.pace.Limit, "limit", 7*24*time.Hour, "when to end the simulation")
	return cmd
}

func (s *simulate) run(cmd *cobra.Command, sentences []string) error {
	if err := checkChoice("output", s.output, "text", "json", "svg"); err != nil {
		return err
	}
	for _, name := range []string{"trains", "starts", "stops", "limit"} {
		if d, err := cmd.Flags().GetDuration(name); err != nil || d < 0 {
			return usageError{fmt.Errorf("--%s %s: use 0s or more", name, d)}
		}
	}
	script, err := s.read(cmd, sentences)
	if err != nil {
		return usageError{err}
	}
	j, err := oneJob(cmd, s.file)
	if err != nil {
		return err
	}
	if err := checkOffline(j.Job, "simulated"); err != nil {
		return err
	}
	if deadline := j.Job.Policy.ActiveDeadlineSeconds; deadline != nil && !cmd.Flags().Changed("trains") {
		s.pace.Trains = min(defaultTraining, job.Seconds(*deadline)/2)
	}
	described := simulation.Describe(j.Job) // before it is scaled
	life, err := simulation.Simulate(j.Manifest, script, s.pace)
	if err != nil {
		return usageError{err}
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	switch s.output {
	case "json":
		text, err := json.MarshalIndent(life, "", "  ")
		if err != nil {
			return err
		}
		out.printf("%s\n", text)
	case "svg":
		out.printf("%s", life.SVG())
	default:
		out.printf("%s %s: %s\n\n%s", j.kind.Name(), j.Job.Name, described, life)
	}
	return out.err
}

// read parses the script of the file, then the sentences of the command line.
func (s *simulate) read(cmd *cobra.Command, sentences []string) (simulation.Script, error) {
	var script simulation.Script
	if s.script != "" {
		if s.script == "-" && s.file == "-" {
			return nil, errors.New("the manifest and the script cannot both come from standard input")
		}
		text, err := readInput(cmd, s.script, "script")
		if err != nil {
			return nil, err
		}
		if script, err = simulation.ParseScript(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", s.script, err)
		}
	}
	for _, sentence := range sentences {
		h, err := simulation.ParseEvent(sentence)
		if err != nil {
			return nil, fmt.Errorf("%w; `trainyard simulate --help` lists what can happen", err)
		}
		script = append(script, h)
	}
	return script, nil
}
