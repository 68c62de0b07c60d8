package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pruned is what Prune has removed.
type Pruned struct {
	Jobs  int
	Bytes int64
}

// orphanAge is how old a directory without a record must be to be removed: a new one gets its record within seconds.
const orphanAge = time.Hour

// Prune removes jobs that ended longer ago than the limits allow, and then those that ended first, until all take no more than the
// limits allow. A job that is not over is kept. It also repairs the index. Other processes may read and record meanwhile.
func (s *Store) Prune(limits Limits, now time.Time) (Pruned, error) {
	var done Pruned
	unlock, err := s.lockIndex()
	if err != nil {
		return done, err
	}
	defer unlock()
	jobs, err := s.found(now)
	if err != nil {
		return done, err
	}
	slices.SortStableFunc(jobs, func(a, b sizedJob) int { return a.end().Compare(b.end()) })
	total := int64(0)
	for _, j := range jobs {
		total += j.size
	}
	var kept []Summary
	for _, j := range jobs {
		// Times of jobs are whole seconds, and may be some way ahead.
		if old := max(0, now.Sub(j.end())) >= limits.Age; !j.Over() || !old && total <= limits.Size {
			kept = append(kept, j.Summary)
			continue
		}
		if err := s.remove(j.Summary); err != nil {
			return done, err
		}
		done.Jobs, done.Bytes, total = done.Jobs+1, done.Bytes+j.size, total-j.size
	}
	if err := s.rewriteIndex(kept); err != nil {
		return done, err
	}
	return done, os.WriteFile(s.pruneMark(), nil, 0o600)
}

// sizedJob is a job with the size of what is recorded of it.
type sizedJob struct {
	Summary
	size int64
}

// found are the jobs whose records exist, whatever the index says.
func (s *Store) found(now time.Time) ([]sizedJob, error) {
	listed, err := s.Summaries()
	if err != nil {
		return nil, err
	}
	var jobs []sizedJob
	known := map[types.UID]bool{}
	for _, summary := range listed {
		known[summary.UID] = true
		if _, err := os.Stat(s.recordFile(summary.Namespace, summary.UID)); err == nil {
			jobs = append(jobs, sizedJob{summary, sizeOf(s.jobDir(summary.Namespace, summary.UID))})
		}
	}
	dirs, err := filepath.Glob(filepath.Join(EscapeGlob(s.dir), "v1", "jobs", "*", "*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		uid, namespace := types.UID(filepath.Base(dir)), filepath.Base(filepath.Dir(dir))
		if known[uid] {
			continue
		}
		r, err := s.Load(namespace, uid)
		info, statErr := os.Stat(dir)
		switch {
		case err == nil:
			jobs = append(jobs, sizedJob{r.Summary, sizeOf(dir)})
		case errors.Is(err, ErrNone) && statErr == nil && now.Sub(info.ModTime()) > orphanAge:
			_ = os.RemoveAll(dir)
		}
	}
	return jobs, nil
}

// remove removes the record first, so that nobody finds half a job.
func (s *Store) remove(summary Summary) error {
	err := os.Remove(s.recordFile(summary.Namespace, summary.UID))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(s.jobDir(summary.Namespace, summary.UID))
	}
	if err != nil {
		return fmt.Errorf("removing what is recorded of job %s: %w", summary.Name, err)
	}
	return nil
}

// Size is how much the store takes on disk.
func (s *Store) Size() int64 { return sizeOf(s.dir) }

func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// pruneMark is a file that Prune touches.
func (s *Store) pruneMark() string { return filepath.Join(s.indexDir(), "pruned") }

// PruneDue reports whether nothing was pruned for a day: a process that ends soon need not prune each time.
func (s *Store) PruneDue(now time.Time) bool {
	if !s.Exists() {
		return false
	}
	info, err := os.Stat(s.pruneMark())
	return err != nil || now.Sub(info.ModTime()) > 24*time.Hour
}
