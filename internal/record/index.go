package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func (s *Store) indexDir() string { return filepath.Join(s.dir, "v1", "index") }

// indexFile has the summaries of the jobs that were created on a day.
func (s *Store) indexFile(created time.Time) string {
	return filepath.Join(s.indexDir(), created.UTC().Format(time.DateOnly)+".ndjson")
}

// lockIndex keeps others from changing the index: the recorder appends to it, and Prune, in whatever process, writes it again.
func (s *Store) lockIndex() (unlock func(), _ error) {
	if err := os.MkdirAll(s.indexDir(), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(s.indexDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking the index of jobs: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// List adds a job's summary to the index.
func (s *Store) List(summary Summary) error {
	line, err := json.Marshal(summary)
	if err != nil {
		return err
	}
	unlock, err := s.lockIndex()
	if err != nil {
		return err
	}
	defer unlock()
	file, err := os.OpenFile(s.indexFile(summary.Created), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if isTorn(file) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// isTorn reports whether a file does not end with a newline: a write was interrupted.
func isTorn(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := []byte{0}
	_, err = file.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Summaries are those of all jobs, the newest first.
func (s *Store) Summaries() ([]Summary, error) {
	days, err := filepath.Glob(filepath.Join(EscapeGlob(s.indexDir()), "*.ndjson"))
	if err != nil {
		return nil, fmt.Errorf("reading the index of jobs: %w", err)
	}
	var all []Summary
	for _, day := range days {
		jobs, err := readIndex(day)
		if err != nil {
			return nil, fmt.Errorf("reading the index of jobs: %w", err)
		}
		all = append(all, jobs...)
	}
	if len(days) == 0 && s.remote != nil { // else the files on disk are newer, and all that there are
		if all, err = s.remoteSummaries(); err != nil {
			return nil, fmt.Errorf("reading the index of jobs: %w", err)
		}
	}
	slices.SortStableFunc(all, func(a, b Summary) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// indexDay is a file of the index in the object store as it was read.
type indexDay struct {
	tag  string
	jobs []Summary
}

// remoteSummaries reads the index from the object store: the files that have changed since the last time.
func (s *Store) remoteSummaries() (all []Summary, _ error) {
	days, err := s.list(s.indexDir())
	if err != nil {
		return nil, err
	}
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	fresh := map[string]indexDay{}
	for _, day := range days {
		known := s.remote.days[day.Name]
		if known.tag != day.Tag || day.Tag == "" {
			content, err := s.read(filepath.Join(s.dir, filepath.FromSlash(day.Name)))
			if errors.Is(err, fs.ErrNotExist) {
				continue // its jobs were removed because of their age
			}
			if err == nil {
				known.jobs, err = parseIndex(bytes.NewReader(content))
			}
			if err != nil {
				return nil, err
			}
			known.tag = day.Tag
		}
		fresh[day.Name] = known
		all = append(all, known.jobs...)
	}
	s.remote.days = fresh
	return all, nil
}

func readIndex(name string) ([]Summary, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its jobs were removed because of their age
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return parseIndex(file)
}

// parseIndex takes the last line about each job. A line that was not written to its end is skipped.
func parseIndex(content io.Reader) ([]Summary, error) {
	var all []Summary
	place := map[types.UID]int{}
	for lines := bufio.NewReader(content); ; {
		line, err := lines.ReadBytes('\n')
		var summary Summary
		if json.Unmarshal(bytes.TrimSpace(line), &summary) == nil && summary.UID != "" {
			at, known := place[summary.UID]
			if !known {
				place[summary.UID] = len(all)
				all = append(all, summary)
			} else {
				all[at] = summary
			}
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// rewriteIndex leaves one line for each of these jobs. The caller holds the lock.
func (s *Store) rewriteIndex(jobs []Summary) error {
	files := map[string][]byte{}
	for _, summary := range jobs {
		line, err := json.Marshal(summary)
		if err != nil {
			return err
		}
		name := s.indexFile(summary.Created)
		files[name] = append(append(files[name], line...), '\n')
	}
	for name, content := range files {
		if err := replaceFile(name, content, true); err != nil {
			return err
		}
	}
	days, err := filepath.Glob(filepath.Join(EscapeGlob(s.indexDir()), "*.ndjson"))
	for _, name := range days {
		if files[name] == nil {
			err = errors.Join(err, s.discard(name))
		}
	}
	return err
}
