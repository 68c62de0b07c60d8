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

// screen is what a person sees while a job runs: lines that stay and, on a terminal, one live line below them that is
// overwritten. Logs go to standard output, everything else to standard error.
type screen struct {
	out, err io.Writer
	// terminal says that logs go to a terminal, colours that they may be coloured.
	terminal, colours bool
	// width is the terminal's width, 0 if there is none.
	width int
	live  string
	drawn bool // the live line is on the screen
	// progress is a replica's incomplete line, progressed when it was last written, redrawn when it was last drawn.
	replica, progress   string
	progressed, redrawn time.Time
}

func newScreen(out, err io.Writer) *screen {
	terminal := isTerminal(out)
	s := &screen{out: out, err: err, terminal: terminal, colours: terminal && os.Getenv("NO_COLOR") == ""}
	if !piped(out) {
		s.width = terminalWidth(err)
	}
	return s
}

// piped reports whether another program reads the output. It may print to the same terminal, where a live line would disturb it.
func piped(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func isTerminal(w io.Writer) bool { return terminalWidth(w) > 0 }

// terminalWidth is 0 if w is not a terminal.
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
		line = text.KeepColours(line)
	}
	prefix := fmt.Sprintf("%-*s", pad, replica)
	if s.colours {
		prefix = fmt.Sprintf("\033[%dm%s\033[0m", colourOf(replica), prefix)
	}
	fmt.Fprintf(s.out, "%s | %s\n", prefix, line)
	s.show()
}

const (
	// redrawInterval is the shortest time between two draws of the live line that show only progress.
	redrawInterval = 100 * time.Millisecond
	// progressTurn is how long the live line waits for a replica's progress before it shows another's.
	progressTurn = time.Second
)

// showProgress shows a replica's incomplete line in the live line. All replicas write at the same time, so it stays with one of them.
func (s *screen) showProgress(replica, line string) {
	now := time.Now()
	if s.progress != "" && s.replica != replica && now.Sub(s.progressed) < progressTurn {
		return
	}
	s.replica, s.progress, s.progressed = replica, strings.TrimSpace(text.Plain(line)), now
	if s.live == "" || now.Sub(s.redrawn) < redrawInterval { // the next draw shows it
		return
	}
	s.redrawn = now
	s.hide()
	s.show()
}

// say prints a line about the job.
func (s *screen) say(format string, args ...any) {
	s.hide()
	fmt.Fprintf(s.err, format+"\n", args...)
	s.show()
}

// setLive changes the live line, if there is a terminal.
func (s *screen) setLive(line string) {
	if s.width == 0 {
		return
	}
	s.hide()
	s.live = line
	s.show()
}

func (s *screen) hide() {
	if s.drawn {
		fmt.Fprint(s.err, "\r\033[K")
		s.drawn = false
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
	fmt.Fprint(s.err, "\033[?7l"+line+"\033[?7h") // no wrapping, because only one line is overwritten
	s.drawn = true
}

// clearLive removes the live line.
func (s *screen) clearLive() { s.setLive("") }

// colourOf is the replica's colour on the terminal, always the same.
func colourOf(replica string) int {
	colours := []int{36, 33, 35, 32, 34, 96, 93, 95, 92, 94}
	role, index, _ := strings.Cut(replica, "-")
	n := 0
	_, _ = fmt.Sscan(index, &n)
	h := fnv.New32a()
	_, _ = h.Write([]byte(role))
	return colours[(int(h.Sum32()%uint32(len(colours)))+n)%len(colours)]
}
