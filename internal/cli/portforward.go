package cli

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	kubectlforward "k8s.io/kubectl/pkg/cmd/portforward"

	"github.com/trainyard/trainyard/internal/text"
)

// forwarding is `trainyard port-forward`: ports of this machine that lead to ports of a replica.
type forwarding struct {
	replicaTarget
	addresses []string
}

func portForwardCommand() *cobra.Command {
	var f forwarding
	cmd := &cobra.Command{
		Use:   "port-forward JOB [REPLICA] [LOCAL:]PORT…",
		Short: "Forward ports of this machine to a running replica",
		Long: `Forward ports of this machine to ports of a running replica, until Ctrl-C or the end of the replica. An empty LOCAL
selects a free port. A job with one replica needs no REPLICA.`,
		Example: `  trainyard port-forward demo worker-0 6006
  trainyard port-forward demo worker-0 8080:6006`,
		Args: f.checkArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	addReplicaTarget(cmd, &f.replicaTarget)
	cmd.Flags().StringSliceVar(&f.addresses, "address", []string{"localhost"}, "the addresses of this machine to listen on")
	return cmd
}

var portPair = regexp.MustCompile(`^(\d{0,5}:)?\d{1,5}$`)

// split separates the replica, which may be left out, from the ports.
func (*forwarding) split(args []string) (replica string, ports []string) {
	if len(args) > 1 && !portPair.MatchString(args[1]) {
		return args[1], args[2:]
	}
	return "", args[1:]
}

func (f *forwarding) checkArguments(cmd *cobra.Command, args []string) error {
	usage := "as in `trainyard port-forward demo worker-0 6006`"
	if len(args) == 0 {
		return usageError{errors.New("no job is named: name a job, a replica and a port, " + usage)}
	}
	_, ports := f.split(args)
	if len(ports) == 0 {
		return usageError{errors.New("no port is named: put it at the end, " + usage)}
	}
	for _, port := range ports {
		if !portPair.MatchString(port) {
			return usageError{fmt.Errorf("%s is not a port: use a number, or two as in 8080:6006", text.Plain(port))}
		}
	}
	return nil
}

func (f *forwarding) run(cmd *cobra.Command, args []string) error {
	replica, ports := f.split(args)
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	r, err := f.reach(ctx, args[0], replica)
	if err != nil {
		return err
	}
	if r.pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("%s does not run yet: %s says what it waits for", r.pod.Name, hint(r.yard, r.job, "why"))
	}
	client, err := rest.RESTClientFor(r.config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	options := kubectlforward.NewDefaultPortForwardOptions(genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()})
	options.Namespace, options.PodName, options.Ports, options.Address = r.pod.Namespace, r.pod.Name, ports, f.addresses
	options.RESTClient, options.Config, options.PodClient = client, r.config, r.yard.Core.CoreV1()
	options.StopChannel, options.ReadyChannel = make(chan struct{}, 1), make(chan struct{})
	err = options.RunPortForwardContext(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, portforward.ErrLostConnectionToPod):
		return fmt.Errorf("%s has ended, or the connection to it is lost: %s says more", r.pod.Name, hint(r.yard, r.job, "why"))
	}
	return f.explain(err)
}
