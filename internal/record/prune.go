package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Pruned is what Prune has removed.
type Pruned struct {
	Jobs  int
	Bytes int64
	// Unreadable says of each job that stays because its record cannot be read what is wrong.
	Unreadable []error
}

// orphanAge is how old a directory without a record must be to be removed: a new one gets its record within seconds.
const orphanAge = time.Hour

// Prune removes jobs that ended longer ago than the limits allow, and then those that ended first, until all take no more than the
// limits allow. A job that is not over is kept. It also repairs the index. Other processes may read and record meanwhile: the index is
// locked only while nothing is asked of the object store.
func (s *Store) Prune(limits Limits, now time.Time) (Pruned, error) {
	remote, err := s.remoteJobs()
	if err == nil {
		err = s.loadUnlisted(remote)
	}
	if err != nil {
		return Pruned{}, err
	}
	done, removed, err := s.pruneIndex(limits, now, remote)
	if err != nil || s.remote == nil {
		return done, err
	}
	var names []string
	for _, key := range removed { // the record comes first, so that nobody finds half a job
		names = append(names, remote[key].names...)
	}
	if err := s.deleteObjects(names); err != nil {
		return done, err // the next time finds what is left
	}
	return done, s.forgetLocal()
}

// pruneIndex removes jobs from the disk and from the index, and returns them.
func (s *Store) pruneIndex(limits Limits, now time.Time, remote map[jobKey]*remoteJob) (done Pruned, removed []jobKey, _ error) {
	unlock, err := s.lockIndex()
	if err != nil {
		return done, nil, err
	}
	defer unlock()
	jobs, orphans, unreadable, err := s.found(now, remote)
	done.Unreadable = unreadable
	if err != nil {
		return done, nil, err
	}
	removed = orphans
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
			return done, nil, err
		}
		removed = append(removed, jobKey{j.Namespace, j.UID})
		done.Jobs, done.Bytes, total = done.Jobs+1, done.Bytes+j.size, total-j.size
	}
	if err := s.rewriteIndex(kept); err != nil {
		return done, nil, err
	}
	s.Written.size.Store(total)
	return done, removed, os.WriteFile(s.pruneMark(), nil, 0o600)
}

// jobKey identifies the directory of a job.
type jobKey struct {
	namespace string
	uid       types.UID
}

// remoteJob is what the object store has of a job.
type remoteJob struct {
	names  []string // the record is the first
	record bool
	size   int64
	newest time.Time
	// unlisted is its record if the index and the disk do not have it, unreadable why that cannot be read.
	unlisted   *Record
	unreadable error
}

// remoteJobs are the jobs in the object store.
func (s *Store) remoteJobs() (map[jobKey]*remoteJob, error) {
	objects, err := s.list(filepath.Join(s.dir, "v1", "jobs"))
	if err != nil {
		return nil, err
	}
	jobs := map[jobKey]*remoteJob{}
	for _, o := range objects {
		parts := strings.SplitN(o.Name, "/", 5) // v1/jobs/<namespace>/<uid>/…
		if len(parts) != 5 {
			continue
		}
		key := jobKey{parts[2], types.UID(parts[3])}
		if jobs[key] == nil {
			jobs[key] = &remoteJob{}
		}
		j := jobs[key]
		if parts[4] == "record.json" {
			j.names, j.record = append([]string{o.Name}, j.names...), true
		} else {
			j.names = append(j.names, o.Name)
		}
		j.size += o.Size
		if o.Modified.After(j.newest) {
			j.newest = o.Modified
		}
	}
	return jobs, nil
}

// loadUnlisted reads the records that the index lacks: it was lost with its disk before it was uploaded.
func (s *Store) loadUnlisted(remote map[jobKey]*remoteJob) error {
	listed, err := s.Summaries()
	if err != nil {
		return err
	}
	known := map[jobKey]bool{}
	for _, summary := range listed {
		known[jobKey{summary.Namespace, summary.UID}] = true
	}
	for key, there := range remote {
		if there.record && !known[key] {
			there.unlisted, there.unreadable = s.Load(key.namespace, key.uid)
		}
	}
	return nil
}

func (s *Store) deleteObjects(names []string) error {
	const most = 1000 // as many as S3 deletes at once
	for len(names) > 0 {
		n := min(most, len(names))
		ctx, cancel := context.WithTimeout(context.Background(), objectsTimeout)
		err := s.remote.Delete(ctx, names[:n])
		cancel()
		if err != nil {
			return fmt.Errorf("deleting old records: %w", err)
		}
		names = names[n:]
	}
	return nil
}

// forgetLocal removes from disk what the object store has of the jobs that are deleted: nothing more happens to them.
func (s *Store) forgetLocal() error {
	all, err := s.Summaries()
	if err != nil {
		return err
	}
	for _, summary := range all {
		if summary.Deleted.IsZero() || !summary.Complete {
			continue
		}
		dir := s.jobDir(summary.Namespace, summary.UID)
		files, err := s.filesBelow(dir)
		if err != nil {
			return err
		}
		if len(files) == 0 || slices.ContainsFunc(files, func(f localFile) bool { return f.isPart() || s.remote.due(f, time.Time{}, true) }) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing what is uploaded of job %s: %w", summary.Name, err)
		}
	}
	return nil
}

// sizedJob is a job with the size of what is recorded of it.
type sizedJob struct {
	Summary
	size int64
}

// found are the jobs whose records exist, whatever the index says. Orphans are objects without a record. Jobs that the index lacks and whose
// records cannot be read are left alone, with the reasons.
func (s *Store) found(now time.Time, remote map[jobKey]*remoteJob) (jobs []sizedJob, orphans []jobKey, unreadable []error, _ error) {
	listed, err := s.Summaries()
	if err != nil {
		return nil, nil, nil, err
	}
	known := map[jobKey]bool{}
	for _, summary := range listed {
		known[jobKey{summary.Namespace, summary.UID}] = true
		_, err := os.Stat(s.recordFile(summary.Namespace, summary.UID))
		there := remote[jobKey{summary.Namespace, summary.UID}]
		if err == nil || there != nil && there.record {
			jobs = append(jobs, sizedJob{summary, max(sizeOf(s.jobDir(summary.Namespace, summary.UID)), there.bytes())})
		}
	}
	dirs, err := filepath.Glob(filepath.Join(EscapeGlob(s.dir), "v1", "jobs", "*", "*"))
	if err != nil {
		return nil, nil, nil, err
	}
	local := map[jobKey]bool{}
	for _, dir := range dirs {
		uid, namespace := types.UID(filepath.Base(dir)), filepath.Base(filepath.Dir(dir))
		local[jobKey{namespace, uid}] = true
		if known[jobKey{namespace, uid}] {
			continue
		}
		r, err := s.LoadFetched(namespace, uid)
		info, statErr := os.Stat(dir)
		switch {
		case err == nil:
			jobs = append(jobs, sizedJob{r.Summary, sizeOf(dir)})
		case !errors.Is(err, ErrNone):
			unreadable = append(unreadable, err)
		case statErr == nil && now.Sub(info.ModTime()) > orphanAge:
			_ = os.RemoveAll(dir)
		}
	}
	for key, there := range remote {
		switch {
		case known[key] || local[key]:
		case there.unlisted != nil:
			jobs = append(jobs, sizedJob{there.unlisted.Summary, there.size})
		case there.unreadable != nil:
			unreadable = append(unreadable, there.unreadable)
		case !there.record && now.Sub(there.newest) > orphanAge:
			orphans = append(orphans, key) // it was pruned, and the object store did not delete all of it
		}
	}
	return jobs, orphans, unreadable, nil
}

func (j *remoteJob) bytes() int64 {
	if j == nil {
		return 0
	}
	return j.size
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
