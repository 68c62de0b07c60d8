package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/yard"
)

// logs is `trainyard logs`: the logs of all replicas of a job, in the order of time.
type logs struct {
	target
	query   yard.LogQuery
	attempt int32
	tail    int64
	follow  bool
	// timestamps says that each line begins with its time.
	timestamps bool
}

func logsCommand() *cobra.Command {
	var l logs
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Show the logs of all replicas, merged in the order of time",
		Long: `Show the logs of all replicas, merged in the order of time. With -f it waits for pods, survives restarts and
outages of the API server, and ends with the job. On the local cluster logs are recorded: they can be shown after their
pods, or the job, are gone, and while the cluster is not running.`,
		Args: checkLogsArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0]) },
	}
	addTarget(cmd, &l.target)
	flags := cmd.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "follow the logs until the job ends")
	flags.StringVar(&l.query.Replica, "replica", "", "only this replica, as in worker-1")
	flags.Int32Var(&l.attempt, "attempt", 0, "only this attempt, counted from 1")
	flags.Int64Var(&l.tail, "tail", -1, "only the last lines of each replica, as in 100 (default: all)")
	flags.Lookup("tail").DefValue = ""
	flags.BoolVar(&l.timestamps, "timestamps", false, "begin each line with its time")
	flags.BoolVarP(&l.query.Previous, "previous", "p", false, "only what each container wrote before it was last restarted in its pod")
	flags.StringVarP(&l.query.Container, "container", "c", "", "another container than the one that trains, also an init container")
	flags.DurationVar(&l.query.Since, "since", 0, "only lines newer than this, as in 10m")
	return cmd
}

// checkLogsArguments tells those who name a replica as for exec that it is a flag here.
func checkLogsArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return usageError{fmt.Errorf("`%[1]s` shows all replicas of one job: `%[1]s %[2]s --replica %[3]s` shows one", cmd.CommandPath(), args[0], args[1])}
	}
	return oneArgument("job")(cmd, args)
}

func (l *logs) run(cmd *cobra.Command, name string) error {
	if l.query.Since < 0 {
		return usageError{fmt.Errorf("--since %s: use a positive time, as in 10m", l.query.Since)}
	}
	if l.query.Previous && l.follow {
		return usageError{errors.New("--previous is about what has ended: leave out -f")}
	}
	if cmd.Flags().Changed("tail") {
		if l.tail < 0 {
			return usageError{fmt.Errorf("--tail %d: use 0 or more", l.tail)}
		}
		l.query.Tail = &l.tail
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	y, j, err := l.look(ctx, cmd, name)
	if err != nil {
		return err
	}
	if err := l.checkContainer(ctx, y, j); err != nil {
		return err
	}
	if cmd.Flags().Changed("attempt") {
		if had := j.Status.Attempt + 1; l.attempt < 1 || l.attempt > had && !l.follow {
			return usageError{fmt.Errorf("%s has no attempt %d: its last is %d, and they are counted from 1", j.Job.Name, l.attempt, had)}
		}
		l.query.Attempt = new(l.attempt - 1)
	}
	if l.query.Replica != "" {
		switch r, err := findReplica(j.Job, l.query.Replica); {
		case err == nil:
			l.query.Replica = shortName(r)
		case !wasReplica(y, j, l.query.Replica):
			return err
		}
	}
	pad := 0
	for _, r := range replicasOf(j.Job) {
		pad = max(pad, len(shortName(r)))
	}
	s := newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr())
	s.width = 0 // no live line
	printed := 0
	show := func(line yard.Line) {
		printed++
		if l.timestamps {
			line.Text = line.Time.UTC().Format("2006-01-02T15:04:05.000Z ") + line.Text
		}
		s.log(line.Replica, line.Text, pad)
	}
	if l.follow && j.Recorded == nil {
		return l.following(ctx, y, j, show, contactTo(cmd.ErrOrStderr()))
	}
	err = y.Logs(ctx, j, l.query, show)
	switch {
	case ctx.Err() != nil:
		return outcome(exitInterrupted)
	case err == nil && printed == 0 && l.query.Previous:
		s.say("There is no earlier log of %s: no container was restarted in its pod.", j.Job.Name)
	case err == nil && printed == 0:
		s.say("There is no log of %s: its pods are gone, or have not written anything. %s may say more.", j.Job.Name, hint(y, j, "why"))
	}
	return l.explain(err)
}

// wasReplica reports whether a job had a replica that it does not have any more: it was scaled down, and its log is recorded.
func wasReplica(y *yard.Yard, j *yard.Job, name string) bool {
	if y.Past == nil {
		return false
	}
	all, err := y.Past.Logs(j.Job.Namespace, j.Job.UID)
	return err == nil && slices.ContainsFunc(all, func(l record.Log) bool { return strings.EqualFold(l.Replica, name) })
}

// checkContainer refuses a container that no pod has.
func (l *logs) checkContainer(ctx context.Context, y *yard.Yard, j *yard.Job) error {
	if l.query.Container == "" {
		return nil
	}
	pods, err := y.Pods(ctx, j)
	if err != nil {
		return l.explain(err)
	}
	var names []string
	for _, pod := range pods {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	if len(pods) > 0 && !slices.Contains(names, l.query.Container) {
		return usageError{fmt.Errorf("%s has no container %s: it has %s", j.Job.Name, l.query.Container, strings.Join(names, ", "))}
	}
	return nil
}

// following prints lines until the job has ended, or the person stops it.
func (l *logs) following(ctx context.Context, y *yard.Yard, j *yard.Job, show func(yard.Line), contact func(answers bool)) error {
	changes, err := y.Follow(ctx, j, contact)
	if err != nil {
		return err
	}
	end := y.FollowLogs(ctx, j, l.query, show)
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-changes:
			if now.Gone || now.Status.Finished() {
				if !end(ctx, logIdleTimeout) && ctx.Err() == nil {
					return fmt.Errorf("the log of %s could not be read to its end: %s shows what is left of it", now.Job.Name, hint(y, now, "logs"))
				}
				return nil
			}
		}
	}
}
