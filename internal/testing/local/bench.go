package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/cluster"
)

// Launched is how a process started.
type Launched struct {
	Ready  time.Duration
	Memory float64 // bytes, idle
}

// Seconds is how long it took to be ready.
func (l Launched) Seconds() float64 { return l.Ready.Seconds() }

// Megabytes is its memory, idle.
func (l Launched) Megabytes() float64 { return l.Memory / 1e6 }

// bareServer is the variable that makes the test binary an API server with its data in the directory that it names.
const bareServer = "TRAINYARD_TEST_BARE_SERVER"

// serveBare runs a bare API server: it says when it is ready and runs until its input ends.
func serveBare(dir string) {
	api, err := cluster.StartAPI(context.Background(), cluster.APIOptions{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
	api.Stop()
	os.Exit(0)
}

// StartBare starts a bare kube-apiserver with its etcd from nothing, in a process of its own: what benches measure against. It
// idles for idleTime before its memory is read.
func StartBare(b *testing.B, idleTime time.Duration) Launched {
	b.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), bareServer+"="+b.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
		b.Fatalf("the API server has ended: %v", cmd.Wait())
	}
	l := Launched{Ready: time.Since(began)}
	<-time.After(idleTime)
	l.Memory = MemoryOf(cmd.Process.Pid)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.Error(err)
	}
	return l
}

// MemoryOf is the memory of a process and all below it, in bytes. What several share is counted once (PSS).
func MemoryOf(pid int) float64 {
	all := append(Below(pid), Process{Pid: pid})
	sum := 0.0
	for _, p := range all {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.Pid))
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				kib, _ := strconv.ParseFloat(fields[1], 64)
				sum += kib * 1024
			}
		}
	}
	return sum
}

// Median is the middle one of many figures.
func Median[T any](all []T, of func(T) float64) float64 {
	var values []float64
	for _, one := range all {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Met says whether an aim is reached.
func Met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// Report prints a bench's result for a person.
func Report(format string, args ...any) { fmt.Printf("\n# "+format+"\n", args...) }
