package record

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

// Objects keeps contents by names, as an object store does. The names are the paths of files below a store's directory, with slashes.
type Objects interface {
	// Put writes an object as a whole, or replaces it.
	Put(ctx context.Context, name string, content []byte) error
	// Get reads an object: all of it, or its first bytes if limit is not 0. The error is fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string, limit int64) ([]byte, error)
	// List returns all objects whose names begin with a prefix.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes objects, which need not exist.
	Delete(ctx context.Context, names []string) error
}

// Object is an object as it is listed. Tag changes with its content.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time
	Tag      string
}

const (
	// objectsTimeout is how long an object store may take for one object or one list.
	objectsTimeout = 30 * time.Second
	// headerSize is more than the gzip header of a part has. headersKept is how many are kept in memory: about 4 MB.
	headerSize  = 1 << 10
	headersKept = 20_000
	// parallel is how many requests are made at once.
	parallel = 16
)

// OpenRemote is a store whose truth is in an object store. The directory has the parts of logs that still grow, what is not uploaded yet,
// and the records of jobs that may still change. Upload brings them to the object store.
func OpenRemote(dir string, remote Objects) *Store {
	s := Open(dir)
	s.remote = &remoteState{Objects: remote, headers: map[string]Index{}, days: map[string]indexDay{}, sent: map[string]fileState{}, continued: map[types.UID]bool{}}
	return s
}

// remoteState is what a process knows of an object store.
type remoteState struct {
	Objects

	mu sync.Mutex // guards what follows
	// headers are the indexes of parts, which never change; days are the files of the index of jobs.
	headers map[string]Index
	days    map[string]indexDay
	// sent are the files that are uploaded as they are, when, and obsolete the objects to delete.
	sent     map[string]fileState
	obsolete []string
	// continued are the jobs whose logs may have begun in an earlier process, which had another directory.
	continued map[types.UID]bool
}

// name is the name of the object for a file of the store.
func (s *Store) name(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, s.dir), string(filepath.Separator)))
}

// read reads a file of the store, or its object if it is not on disk.
func (s *Store) read(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if s.remote == nil || !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), objectsTimeout)
	defer cancel()
	return s.remote.Get(ctx, s.name(path), 0)
}

// list lists the objects below a directory. There are none if the store is on disk only.
func (s *Store) list(dir string) ([]Object, error) {
	if s.remote == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), objectsTimeout)
	defer cancel()
	return s.remote.List(ctx, s.name(dir)+"/")
}

// header is the index of a part in the object store.
func (r *remoteState) header(name string) (index Index, damaged bool, err error) {
	r.mu.Lock()
	index, ok := r.headers[name]
	r.mu.Unlock()
	if ok {
		return index, false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), objectsTimeout)
	defer cancel()
	content, err := r.Get(ctx, name, headerSize)
	if err != nil {
		return index, false, err
	}
	index, ok = readHeader(content)
	if !ok {
		return index, true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.headers) >= headersKept {
		clear(r.headers)
	}
	r.headers[name] = index
	return index, false, nil
}

// readHeaders reads the indexes of parts at once, so that those who need them one after the other need not wait for each.
func (s *Store) readHeaders(dir string, all []part) error {
	var reads errgroup.Group
	reads.SetLimit(parallel)
	for _, p := range all {
		if p.remote {
			reads.Go(func() error {
				_, _, err := s.remote.header(s.name(filepath.Join(dir, p.name())))
				if errors.Is(err, fs.ErrNotExist) {
					return nil // it was removed to limit the size
				}
				return err
			})
		}
	}
	return reads.Wait()
}

// Fetch takes from the object store what a process needs to continue: the index of jobs, and the records of those that are not deleted, or that the
// index does not have because the last process was killed. Files that are on disk are newer.
func (s *Store) Fetch(ctx context.Context) error {
	if s.remote == nil {
		return nil
	}
	days, err := s.list(s.indexDir())
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := s.fetch(ctx, day.Name); err != nil {
			return err
		}
	}
	jobs, err := s.remoteJobs()
	if err != nil {
		return err
	}
	all, err := s.Summaries()
	if err != nil {
		return err
	}
	for _, summary := range all {
		if !summary.Deleted.IsZero() && summary.Complete {
			delete(jobs, jobKey{summary.Namespace, summary.UID})
		}
	}
	var fetches errgroup.Group
	fetches.SetLimit(parallel)
	for key := range jobs {
		s.remote.continued[key.uid] = true
		fetches.Go(func() error {
			return errors.Join(s.fetch(ctx, s.name(s.recordFile(key.namespace, key.uid))), s.fetch(ctx, s.name(s.usageFile(key.namespace, key.uid))))
		})
	}
	return fetches.Wait()
}

// fetch copies an object to disk, unless the disk has it or there is none.
func (s *Store) fetch(ctx context.Context, name string) error {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	content, err := s.remote.Get(ctx, name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return replaceFile(path, content, false)
}
