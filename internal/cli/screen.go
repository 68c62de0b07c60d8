package cli

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is what a person sees while a job runs: lines that stay, and on a terminal one live line below them that is
// written over. Logs go to standard output, all else to standard error.
type screen struct {
	out, err io.Writer
	colours  bool
	// width is the terminal's, 0 where there is none.
	width int
	live  string
	shown bool
}

func newScreen(out, err io.Writer) *screen {
	s := &screen{out: out, err: err, colours: terminalWidth(out) > 0 && os.Getenv("NO_COLOR") == ""}
	s.width = terminalWidth(err)
	return s
}

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
func (s *screen) log(replica, text string, pad int) {
	s.hide()
	prefix := fmt.Sprintf("%-*s", pad, replica)
	if s.colours {
		prefix = fmt.Sprintf("\033[%dm%s\033[0m", colourOf(replica), prefix)
	}
	fmt.Fprintf(s.out, "%s | %s\n", prefix, text)
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
	if utf8.RuneCountInString(line) >= s.width {
		line = string([]rune(line)[:s.width-2]) + "…"
	}
	fmt.Fprint(s.err, line)
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
