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
	"strings"
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
	days, err := os.ReadDir(s.indexDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the index of jobs: %w", err)
	}
	var all []Summary
	for _, day := range days {
		if !strings.HasSuffix(day.Name(), ".ndjson") {
			continue
		}
		jobs, err := readIndex(filepath.Join(s.indexDir(), day.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the index of jobs: %w", err)
		}
		all = append(all, jobs...)
	}
	slices.SortStableFunc(all, func(a, b Summary) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// readIndex takes the last line about each job. A line that was not written to its end is skipped.
func readIndex(name string) ([]Summary, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var all []Summary
	place := map[types.UID]int{}
	for lines := bufio.NewReader(file); ; {
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
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}
