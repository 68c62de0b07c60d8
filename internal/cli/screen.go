package cli

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/trainyard/trainyard/internal/text"
)

// screen is what a person sees while a job runs: lines that stay, and on a terminal one live line below them that is
// written over. Logs go to standard output, all else to standard error.
type screen struct {
	out, err io.Writer
	// terminal says that logs go to one, colours that they may be coloured.
	terminal, colours bool
	// width is the terminal's, 0 where there is none.
	width int
	live  string
	shown bool
	// progress is what a replica has written of a line that is not ended, heard when it last wrote, drawn when that was last drawn.
	replica, progress string
	heard, drawn      time.Time
}

func newScreen(out, err io.Writer) *screen {
	terminal := isTerminal(out)
	s := &screen{out: out, err: err, terminal: terminal, colours: terminal && os.Getenv("NO_COLOR") == ""}
	if !piped(out) {
		s.width = terminalWidth(err)
	}
	return s
}

// piped tells whether another program has what is written: if it shows that on the same terminal, a live line would be in its way.
func piped(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func isTerminal(w io.Writer) bool { return terminalWidth(w) > 0 }

// terminalWidth is 0 for what is no terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// log prints a line of a replica's log.
func (s *screen) log(replica, line string, pad int) {
	s.hide()
	if replica == s.replica {
		s.progress = ""
	}
	if s.terminal {
		line = text.Tame(line)
	}
	prefix := fmt.Sprintf("%-*s", pad, replica)
	if s.colours {
		prefix = fmt.Sprintf("\033[%dm%s\033[0m", colourOf(replica), prefix)
	}
	fmt.Fprintf(s.out, "%s | %s\n", prefix, line)
	s.show()
}

const (
	// pace is how often the live line is drawn for progress alone, at most.
	pace = 100 * time.Millisecond
	// turn is how long the live line waits for a replica before it shows another's progress.
	turn = time.Second
)

// unfinished shows in the live line what a replica has written of a line so far. As all write at the same time, it stays with
// one of them.
func (s *screen) unfinished(replica, line string) {
	now := time.Now()
	if s.progress != "" && s.replica != replica && now.Sub(s.heard) < turn {
		return
	}
	s.replica, s.progress, s.heard = replica, strings.TrimSpace(text.Plain(line)), now
	if s.live == "" || now.Sub(s.drawn) < pace { // the next change of the live line shows it
		return
	}
	s.drawn = now
	s.hide()
	s.show()
}

// say prints a line about the job.
func (s *screen) say(format string, args ...any) {
	s.hide()
	fmt.Fprintf(s.err, format+"\n", args...)
	s.show()
}

// keep changes the live line. Without a terminal there is none.
func (s *screen) keep(line string) {
	if s.width == 0 {
		return
	}
	s.hide()
	s.live = line
	s.show()
}

func (s *screen) hide() {
	if s.shown {
		fmt.Fprint(s.err, "\r\033[K")
		s.shown = false
	}
}

func (s *screen) show() {
	if s.width == 0 || s.live == "" {
		return
	}
	line := s.live
	if s.progress != "" {
		line += " · " + s.replica + ": " + s.progress
	}
	if utf8.RuneCountInString(line) >= s.width {
		line = string([]rune(line)[:max(s.width-2, 0)]) + "…"
	}
	fmt.Fprint(s.err, "\033[?7l"+line+"\033[?7h") // wide letters must not wrap it: only one line is written over
	s.shown = true
}

// end removes the live line.
func (s *screen) end() { s.keep("") }

// colourOf gives each replica one of the terminal's colours, always the same.
func colourOf(replica string) int {
	colours := []int{36, 33, 35, 32, 34, 96, 93, 95, 92, 94}
	role, index, _ := strings.Cut(replica, "-")
	n := 0
	_, _ = fmt.Sscan(index, &n)
	h := fnv.New32a()
	_, _ = h.Write([]byte(role))
	return colours[(int(h.Sum32()%uint32(len(colours)))+n)%len(colours)]
}
