package procrun

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/internal/procrun/pid1"
)

// streams are a command's standard streams: three pipes, or one terminal.
type streams struct {
	theirs [3]*os.File // the command's ends
	tty    *os.File    // our end of the terminal
	stdin  *os.File    // our ends of the pipes; stdin is nil if the command gets none
	stdout *os.File
	stderr *os.File
}

// openStreams opens streams for a command that runs as owner.
func openStreams(stdin, tty bool, owner pid1.User) (*streams, error) {
	s := &streams{}
	var err error
	if tty {
		if s.tty, s.theirs[0], err = openTerminal(); err != nil {
			return nil, err
		}
		if !owner.Mapped {
			_ = s.theirs[0].Chown(int(owner.UID), -1) // so that the command can open it again by name
		}
		s.theirs[1], s.theirs[2] = s.theirs[0], s.theirs[0]
		s.stdin, s.stdout = s.tty, s.tty
		return s, nil
	}
	if stdin {
		s.theirs[0], s.stdin, err = os.Pipe()
	} else {
		s.theirs[0], err = os.Open(os.DevNull)
	}
	if err == nil {
		s.stdout, s.theirs[1], err = os.Pipe()
	}
	if err == nil {
		s.stderr, s.theirs[2], err = os.Pipe()
	}
	if err != nil {
		s.closeTheirs()
		s.close()
		return nil, fmt.Errorf("opening standard streams: %w", err)
	}
	return s, nil
}

// closeTheirs closes the command's ends here, so that ours see the end when the command closes them.
func (s *streams) closeTheirs() {
	for i, file := range s.theirs {
		if file != nil && (s.tty == nil || i == 0) {
			_ = file.Close()
		}
	}
}

func (s *streams) close() {
	for _, file := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if file != nil {
			_ = file.Close() // a terminal is stdin and stdout at once: closing it twice does no harm
		}
	}
}

// resize sets the terminal's size; without a terminal it does nothing.
func (s *streams) resize(width, height uint16) {
	if s.tty != nil && width > 0 && height > 0 {
		_ = setSize(s.tty, width, height)
	}
}

// maxPipe is the largest pipe that Linux lets an ordinary user have by default.
const maxPipe = 1 << 20

// enlarge lets the command write more before anybody reads. Where that is refused the pipes stay as they are.
func (s *streams) enlarge() {
	for _, file := range []*os.File{s.stdout, s.stderr} {
		if file == nil || s.tty != nil {
			continue
		}
		if raw, err := file.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, maxPipe) })
		}
	}
}

// pump is a stream of output that is being read.
type pump struct {
	from *os.File
	to   func([]byte)
	done chan struct{}
}

// startPump reads from until its end and hands over what comes.
func startPump(from *os.File, to func([]byte)) *pump {
	p := &pump{from: from, to: to, done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pump) run() {
	defer close(p.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := p.from.Read(buffer)
		if n > 0 {
			p.to(buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.drain(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// drainTimeout is how long a stream may stay open after its command has ended. Only a process that outlives the command
// can hold it open, and what that one writes does not belong to the command.
const drainTimeout = 200 * time.Millisecond

// finish waits until everything is read that was written before the command ended.
func (p *pump) finish() {
	_ = p.from.SetReadDeadline(time.Now().Add(drainTimeout))
	<-p.done
}

// drain reads what is in the pipe without waiting for more.
func (p *pump) drain(buffer []byte) {
	_ = p.from.SetReadDeadline(time.Time{})
	raw, err := p.from.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		for left := 1 << 20; left > 0; {
			n, err := unix.Read(int(fd), buffer)
			if n <= 0 || err != nil {
				break
			}
			p.to(buffer[:n])
			left -= n
		}
		return true
	})
}

// closeInput ends the command's input. On a terminal the end of input is a character.
func (s *streams) closeInput() {
	if s.tty != nil {
		_, _ = s.tty.Write([]byte{4})
		return
	}
	_ = s.stdin.Close()
}
