package mpiagent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// runPrepare is the init container of every pod of a job.
func runPrepare(args []string) error {
	plan, err := mpiplan.Parse(args)
	if err != nil {
		return err
	}
	if err := write(plan, mpiplan.Dir); err != nil {
		return err
	}
	if !plan.Wait {
		return nil
	}
	return wait(context.Background(), plan, os.Stdout)
}

// write fills the folder of the pod. Everybody may read it: containers may run as any user.
func write(p mpiplan.Plan, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if target := filepath.Join(dir, mpiplan.Name); program != target { // the local cluster shows it there
		if err := copyProgram(program, target); err != nil {
			return fmt.Errorf("installing the agent: %w", err)
		}
	}
	if err := os.Symlink(mpiplan.Name, filepath.Join(dir, "ssh")); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("installing the agent as ssh: %w", err)
	}
	for _, file := range []struct {
		name, text string
		mode       os.FileMode
	}{
		{filepath.Base(mpiplan.Hostfile), p.HostFile(), 0o444},
		{filepath.Base(mpiplan.RemoteShell), "#!/bin/sh\nexec " + mpiplan.Program + " ssh \"$@\"\n", 0o555},
		{filepath.Base(mpiplan.DiscoverHosts), "#!/bin/sh\nexec " + mpiplan.Program + " hosts\n", 0o555},
		{mpiplan.ServiceFile, p.Service, 0o444},
	} {
		path := filepath.Join(dir, file.name)
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(file.text), file.mode); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		if err := os.Chmod(path, file.mode); err != nil { // whatever the umask is
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	part := to + ".part" // a half copy must not look like a whole one
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close(), os.Chmod(part, 0o755)); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// How the Launcher waits for Workers: how many it asks at the same time, how long an answer may take, and the time between two tries,
// which grows from firstTry to lastTry. It reports every reportAfter whom it waits for.
const (
	atOnce      = 64
	answerTime  = 5 * time.Second
	firstTry    = 100 * time.Millisecond
	lastTry     = 2 * time.Second
	reportAfter = 10 * time.Second
)

// wait returns when every Worker answers. There is no limit: the job's own deadline limits it.
func wait(ctx context.Context, p mpiplan.Plan, log io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, host := range p.Hosts() {
		group.Go(func() error { return waitFor(ctx, p, host, log) })
	}
	return group.Wait()
}

func waitFor(ctx context.Context, p mpiplan.Plan, host string, log io.Writer) error {
	began, delay := time.Now(), firstTry
	for {
		err := answers(ctx, p, host)
		if err == nil {
			return nil
		}
		if time.Since(began) > reportAfter {
			began = time.Now()
			_, _ = fmt.Fprintf(log, "waiting for %s: %v\n", host, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", host, err)
		case <-time.After(delay):
		}
		delay = min(2*delay, lastTry)
	}
}

// answers asks whether an SSH server answers on a host. A connection alone says nothing: a proxy accepts it before the server runs. A
// sshd of the image may listen on its usual port.
func answers(ctx context.Context, p mpiplan.Plan, host string) error {
	ports := []int{mpiplan.Port}
	if !p.Agent {
		ports = append(ports, 22)
	}
	var errs []error
	for _, port := range ports {
		err := greets(ctx, net.JoinHostPort(inService(host, p.Service), strconv.Itoa(port)))
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func greets(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(answerTime))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "SSH-") {
		return fmt.Errorf("%s is no SSH server yet", address)
	}
	return nil
}

// inService is the name under which a host is found. A name without a dot is one of the job's own pods.
func inService(host, service string) string {
	if service == "" || strings.Contains(host, ".") || host == "localhost" {
		return host
	}
	return host + "." + service
}

// runHosts prints the hosts that answer now, as Horovod's discovery script does.
func runHosts(out io.Writer) error {
	text, err := os.ReadFile(mpiplan.Hostfile)
	if err != nil {
		return fmt.Errorf("reading the hosts: %w", err)
	}
	service, _ := os.ReadFile(filepath.Join(mpiplan.Dir, mpiplan.ServiceFile))
	hosts := readHosts(string(text))
	alive := make([]bool, len(hosts))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, h := range hosts {
		group.Go(func() error {
			own, _ := os.Hostname()
			short, _, _ := strings.Cut(h.name, ".")
			alive[i] = short == own || answers(context.Background(), mpiplan.Plan{Service: string(service)}, h.name) == nil
			return nil
		})
	}
	_ = group.Wait()
	for i, h := range hosts {
		if alive[i] {
			_, _ = fmt.Fprintf(out, "%s:%s\n", h.name, h.slots)
		}
	}
	return nil
}

type host struct{ name, slots string }

// readHosts reads a host file of either format.
func readHosts(text string) []host {
	var all []host
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, slots, ok := strings.Cut(line, " slots=")
		if !ok {
			name, slots, ok = strings.Cut(line, ":")
		}
		if ok {
			all = append(all, host{name, slots})
		}
	}
	return all
}
