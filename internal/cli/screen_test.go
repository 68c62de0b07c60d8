package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestScreenShowsProgressInTheLiveLine(t *testing.T) { synctest.Test(t, showProgress) }

func showProgress(t *testing.T) {
	var out, err bytes.Buffer
	s := &screen{out: &out, err: &err, width: 60}
	sees := func(what, want string) {
		t.Helper()
		got := err.String()
		got = got[strings.LastIndex(got, "\033[K")+len("\033[K"):]
		if got = strings.NewReplacer("\033[?7l", "", "\033[?7h", "").Replace(got); got != want {
			t.Errorf("%s: the live line is %q, want %q", what, got, want)
		}
	}
	s.setLive("")
	s.showProgress("worker-0", "1%")
	if err.Len() > 0 {
		t.Errorf("without a live line there is %q", err.String())
	}
	s.setLive("train · starting")
	s.setLive("train · running")
	sees("it shows what was written before it", "train · running · worker-0: 1%")
	s.showProgress("worker-1", "2%")
	s.setLive("train · running")
	sees("it stays with a replica", "train · running · worker-0: 1%")
	time.Sleep(progressTurn)
	s.showProgress("worker-1", "\033[31m 3%\t|█\xe2")
	sees("it leaves one that is silent for another, without its colours", "train · running · worker-1: 3% |█")
	s.showProgress("worker-1", "4%")
	sees("it moves not more often than can be seen", "train · running · worker-1: 3% |█")
	s.log("worker-0", "100%", 8)
	sees("another's line is ended", "train · running · worker-1: 4%")
	s.log("worker-1", "100%", 8)
	sees("its own line is ended", "train · running")
	time.Sleep(redrawInterval)
	s.showProgress("worker-0", strings.Repeat("█", 60))
	sees("it is cut", "train · running · worker-0: "+strings.Repeat("█", 60-2-len([]rune("train · running · worker-0: ")))+"…")
	s.clearLive()
	sees("it goes", "")
	if got, want := out.String(), "worker-0 | 100%\nworker-1 | 100%\n"; got != want {
		t.Errorf("what stays is %q, want %q", got, want)
	}
}

func TestReplicasKeepTheirColoursToThemselves(t *testing.T) {
	for _, row := range []struct{ name, text, onTerminal string }{
		{"plain", "one\ttwo ü", "one\ttwo ü"},
		{"coloured", "\033[1;31mred\033[0m", "\033[1;31mred\033[0m\033[0m"},
		{"coloured without an end", "\033[31mred", "\033[31mred\033[0m"},
		{"it clears the line and moves up", "\033[K\033[2Aone\033[?25l", "one"},
		{"it names the window", "\033]0;title\aone\033]0;title\033\\", "one"},
		{"it rings, and goes back", "o\an\be\0337\033(B", "one"},
		{"half a sequence", "one\033[3", "one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for terminal, want := range map[bool]string{true: row.onTerminal, false: row.text} {
				var out bytes.Buffer
				(&screen{out: &out, terminal: terminal}).log("worker-0", row.text, 8)
				if got := out.String(); got != "worker-0 | "+want+"\n" {
					t.Errorf("on a terminal %v: %q, want %q", terminal, got, want)
				}
			}
		})
	}
}
