package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Log is the log of one run of a container: a container that is restarted in its pod has another one.
type Log struct {
	Attempt   int32
	Replica   string // as in worker-1
	Container string
	Restart   int32
	Pod       types.UID
}

func (l Log) path() string {
	return filepath.Join("log", strconv.Itoa(int(l.Attempt)), l.Replica, fmt.Sprintf("%s.%d.%s", l.Container, l.Restart, l.Pod))
}

// parseLog reads what path wrote: attempt, replica, and the rest.
func parseLog(attempt, replica, name string) (Log, bool) {
	parts := strings.SplitN(name, ".", 3)
	number, err := strconv.ParseInt(attempt, 10, 32)
	if err != nil || len(parts) != 3 {
		return Log{}, false
	}
	restart, err := strconv.ParseInt(parts[1], 10, 32)
	return Log{Attempt: int32(number), Replica: replica, Container: parts[0], Restart: int32(restart), Pod: types.UID(parts[2])}, err == nil
}

// Logs are the logs of a job, sorted by attempt, replica and restart.
func (s *Store) Logs(namespace string, uid types.UID) ([]Log, error) {
	dir := filepath.Join(s.jobDir(namespace, uid), "log")
	names, err := filepath.Glob(filepath.Join(EscapeGlob(dir), "*", "*", "*"))
	if err != nil {
		return nil, err
	}
	objects, err := s.list(dir)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		names = append(names, filepath.Dir(filepath.FromSlash(o.Name)))
	}
	var all []Log
	found := map[Log]bool{}
	for _, name := range names {
		parts := strings.Split(name, string(filepath.Separator))
		n := len(parts)
		if n < 3 {
			continue
		}
		if l, ok := parseLog(parts[n-3], parts[n-2], parts[n-1]); ok && !found[l] {
			found[l] = true
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b Log) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), strings.Compare(a.Replica, b.Replica), strings.Compare(a.Container, b.Container), cmp.Compare(a.Restart, b.Restart))
	})
	return all, nil
}

// RemoveAttempt removes the logs of an attempt of a job.
func (s *Store) RemoveAttempt(namespace string, uid types.UID, attempt int32) error {
	return s.discardAll(filepath.Join(s.jobDir(namespace, uid), "log", strconv.Itoa(int(attempt))))
}

// RemoveLog removes a log.
func (s *Store) RemoveLog(namespace string, uid types.UID, l Log) error {
	return s.discardAll(filepath.Join(s.jobDir(namespace, uid), l.path()))
}

// EscapeGlob is a path in which no character is special to filepath.Glob.
func EscapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// part is a file of a log, or an object if it is remote.
type part struct {
	number int
	sealed bool
	remote bool
}

func (p part) name() string {
	if p.sealed {
		return strconv.Itoa(p.number) + ".gz"
	}
	return strconv.Itoa(p.number) + ".log"
}

// parts are the files of a log, in their order, also those in the object store. If the recorder was killed after it sealed a part and before it
// removed the file that the part was made from, both are there, and the sealed one counts. The disk is looked at first, because a part is
// removed from it when the object store has it.
func (s *Store) parts(dir string, remote bool) ([]part, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := map[int]part{}
	add := func(name string, remote bool) {
		base, kind, _ := strings.Cut(name, ".")
		number, err := strconv.Atoi(base)
		if err != nil || kind != "gz" && kind != "log" {
			return
		}
		if p := (part{number, kind == "gz", remote}); p.sealed && (!remote || !found[number].sealed) || !found[number].sealed {
			found[number] = p
		}
	}
	for _, entry := range entries {
		add(entry.Name(), false)
	}
	if remote {
		objects, err := s.list(dir)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			add(path.Base(o.Name), true)
		}
	}
	all := make([]part, 0, len(found))
	for _, p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

// wholeLines is the beginning of a text that ends with a newline.
func wholeLines(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }
