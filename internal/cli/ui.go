package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/ui"
	"github.com/trainyard/trainyard/internal/yard"
)

// dashboard is `trainyard ui`: the dashboard of the local cluster, in the foreground.
type dashboard struct {
	dataDir string
	port    int
	noOpen  bool
}

func uiCommand() *cobra.Command {
	var d dashboard
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show all jobs, also past ones, in a browser",
		Long: `Show the jobs of the local cluster in a browser, also past ones: how they ended, their attempts, logs and events. The cluster
need not run. It prints a link that works once, and opens it if there is a display. It runs until Ctrl-C.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	addDataDir(cmd, &d.dataDir)
	cmd.Flags().IntVar(&d.port, "port", 0, "the port on 127.0.0.1 (default: any free one)")
	cmd.Flags().BoolVar(&d.noOpen, "no-open", false, "only print the link")
	return cmd
}

func (d *dashboard) run(cmd *cobra.Command) error {
	dir, err := d.dataDir, error(nil)
	if dir == "" {
		if dir, err = defaultDataDir(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", d.port))
	if err != nil {
		return usageError{fmt.Errorf("opening a port for the dashboard: %w; name another with --port", err)}
	}
	address := listener.Addr().(*net.TCPAddr)
	open := func(string) (*yard.Yard, error) { return (&target{dataDir: dir}).open() }
	server := ui.New(record.Of(dir), ui.Cluster{Running: func() bool { return clusterRuns(dir) }, Open: open}, address.Port)
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	serving := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	link := fmt.Sprintf("http://%s%s", address, server.Link())
	fmt.Fprintf(cmd.OutOrStdout(), "The dashboard is at %s\nThe link works once. Ctrl-C stops the dashboard.\n", link)
	if !d.noOpen {
		openBrowser(link)
	}
	go func() {
		<-ctx.Done()
		_ = serving.Close() // whoever still reads can read again later
	}()
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the dashboard: %w", err)
	}
	return nil
}

// openBrowser opens a link if there is a display. If that fails, the link is printed anyway.
func openBrowser(link string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if open := exec.Command("xdg-open", link); open.Start() == nil {
		go func() { _ = open.Wait() }()
	}
}
