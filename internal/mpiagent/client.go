package mpiagent

import (
	"bytes"
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

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// call is one command on another host.
type call struct {
	host, command string
	port          int
}

// parseCall reads arguments as OpenSSH does: options, the host, and the words of the command. Options that are not about the host and
// its port have no meaning here.
func parseCall(args []string) (call, error) {
	c := call{port: mpiplan.Port}
	const withValue = "BbcDEeFIiJLlmOoPpQRSWw"
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		option, value := args[0], ""
		args = args[1:]
		if option == "--" {
			break
		}
		if i := strings.IndexAny(option[1:], withValue); i >= 0 {
			if value = option[i+2:]; value == "" && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			if option[i+1] == 'p' {
				port, err := strconv.Atoi(value)
				if err != nil {
					return c, fmt.Errorf("-p %s: use the number of a port", value)
				}
				c.port = port
			}
		}
	}
	if len(args) == 0 {
		return c, errors.New("the host is missing")
	}
	c.host = args[0][strings.LastIndex(args[0], "@")+1:]
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if c.command = strings.Join(rest, " "); c.command == "" {
		return c, errors.New("the command is missing: this client opens no shell")
	}
	return c, nil
}

// runClient is ssh, as mpirun calls it.
func runClient(args []string) (int, error) {
	c, err := parseCall(args)
	if err != nil {
		return failed, err
	}
	service, _ := os.ReadFile(filepath.Join(mpiplan.Dir, mpiplan.ServiceFile))
	address := net.JoinHostPort(inService(c.host, string(service)), strconv.Itoa(c.port))
	conn, err := dial(context.Background(), address, keys(mpiplan.KeysDir))
	if err != nil {
		return failed, fmt.Errorf("connecting to %s: %w", c.host, err)
	}
	defer func() { _ = conn.Close() }()
	return c.run(conn)
}

func (c call) run(conn *ssh.Client) (int, error) {
	s, err := conn.NewSession()
	if err != nil {
		return failed, fmt.Errorf("opening a session on %s: %w", c.host, err)
	}
	s.Stdin, s.Stdout, s.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = s.Run(c.command)
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	default:
		return failed, fmt.Errorf("running a command on %s: %w", c.host, err)
	}
}

// connectWithin is how long a client tries to reach a server. The Workers have answered before the Launcher started, but a name may
// be resolved late, and a Worker that is replaced alone comes back.
const connectWithin = 30 * time.Second

// dial connects to a server of the same job.
func dial(ctx context.Context, address string, from keys) (*ssh.Client, error) {
	own, err := from.private(mpiplan.PrivateKey)
	if err != nil {
		return nil, err
	}
	host, err := from.public(mpiplan.KnownHost)
	if err != nil {
		return nil, err
	}
	config := &ssh.ClientConfig{
		User: "mpi", Auth: []ssh.AuthMethod{ssh.PublicKeys(own)},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if !bytes.Equal(key.Marshal(), host.Marshal()) {
				return errForeign
			}
			return nil
		},
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	for delay := firstTry; ; delay = min(2*delay, lastTry) {
		conn, err := tryOnce(ctx, address, config)
		if err == nil || !isNetwork(err) { // a server that answers and refuses goes on refusing
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(delay):
		}
	}
}

// tryOnce connects. A host that accepts a connection and then says nothing is an error, too.
func tryOnce(ctx context.Context, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	tcp, err := (&net.Dialer{Timeout: answerTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = tcp.SetDeadline(time.Now().Add(answerTime))
	conn, channels, requests, err := ssh.NewClientConn(tcp, address, config)
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	_ = tcp.SetDeadline(time.Time{})
	return ssh.NewClient(conn, channels, requests), nil
}

// isNetwork reports whether the way to a server failed and not the server. A Worker that dies, or a proxy whose backend is not there
// yet, ends a connection in the middle of the handshake.
func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF)
}
