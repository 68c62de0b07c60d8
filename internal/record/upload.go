package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// uploadInterval is how often files that can change are uploaded. A part of a log never changes, and is uploaded at once.
	uploadInterval = 10 * time.Second
	// A failed upload is repeated after minBackoff, and each time later, up to maxBackoff.
	lookInterval           = time.Second
	minBackoff, maxBackoff = time.Second, time.Minute
)

// fileState says which version of a file was uploaded, and when.
type fileState struct {
	size     int64
	modified time.Time
	sent     time.Time
}

// localFile is a file that belongs into the object store.
type localFile struct {
	path, name string
	fileState
}

func (f localFile) isPart() bool { return strings.HasSuffix(f.name, ".gz") }

// order is the order of uploads: logs come before the record that calls them complete, and records before the index that lists them.
func (f localFile) order() int {
	switch {
	case f.isPart():
		return 0
	case strings.HasPrefix(f.name, "v1/index/"):
		return 2
	}
	return 1
}

// KeepUploading uploads until ctx ends. It reports each result, so that an outage can be logged once. An outage loses nothing as long as the disk
// may hold the parts of logs (Limits.Held).
func (s *Store) KeepUploading(ctx context.Context, report func(error)) {
	for wait, backoff := lookInterval, minBackoff; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := s.Upload(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		report(err)
		wait, backoff = backoff, min(2*backoff, maxBackoff)
		if err == nil {
			wait, backoff = lookInterval, minBackoff
		}
	}
}

// Upload brings what has changed to the object store, and removes the parts of logs from disk that are there.
func (s *Store) Upload(ctx context.Context, now time.Time) error { return s.upload(ctx, now, false) }

// UploadAll also brings what was uploaded a moment ago and has changed since. It is called before the process ends.
func (s *Store) UploadAll(ctx context.Context, now time.Time) error { return s.upload(ctx, now, true) }

func (s *Store) upload(ctx context.Context, now time.Time, all bool) error {
	if s.remote == nil {
		return nil
	}
	files, err := s.localFiles()
	if err != nil {
		return err
	}
	if err := s.deleteObsolete(ctx); err != nil {
		return errors.Join(err, s.dropOldest(files))
	}
	files = slices.DeleteFunc(files, func(f localFile) bool { return !s.remote.due(f, now, all) })
	for len(files) > 0 {
		n := 0
		for n < len(files) && files[n].order() == files[0].order() {
			n++
		}
		if err := s.send(ctx, files[:n], now); err != nil {
			rest, listErr := s.localFiles()
			return errors.Join(err, listErr, s.dropOldest(rest))
		}
		files = files[n:]
	}
	return nil
}

// localFiles are the files that belong into the object store, in the order of uploads, the oldest first.
func (s *Store) localFiles() ([]localFile, error) { return s.filesBelow(s.dir) }

func (s *Store) filesBelow(dir string) (files []localFile, _ error) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		extension := filepath.Ext(path)
		if err != nil || extension != ".gz" && extension != ".json" && extension != ".ndjson" {
			return err
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, localFile{path, s.name(path), fileState{size: info.Size(), modified: info.ModTime()}})
		}
		return nil
	})
	slices.SortStableFunc(files, func(a, b localFile) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), a.modified.Compare(b.modified))
	})
	return files, err
}

// due reports whether the object store has another version of a file, and it is time to replace it.
func (r *remoteState) due(f localFile, now time.Time, all bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, known := r.sent[f.name]
	return !known || (f.size != sent.size || !f.modified.Equal(sent.modified)) && (all || f.isPart() || now.Sub(sent.sent) >= uploadInterval)
}

// send uploads files, several at once. It begins no more when one has failed: each would wait as long.
func (s *Store) send(ctx context.Context, files []localFile, now time.Time) error {
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(parallel / 2)
	for _, f := range files {
		sending.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			return s.sendFile(ctx, f, now)
		})
	}
	return sending.Wait()
}

func (s *Store) sendFile(ctx context.Context, f localFile, now time.Time) error {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed to limit the size
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	if err := s.remote.Put(ctx, f.name, content); err != nil {
		return fmt.Errorf("uploading %s: %w", f.name, err)
	}
	if f.isPart() {
		if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) { // it may have been removed to limit the size
			return err
		}
		return nil
	}
	f.sent = now
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	s.remote.sent[f.name] = f.fileState
	return nil
}

// discard removes a part of a log from disk now, and from the object store with the next upload.
func (s *Store) discard(path string) error {
	if s.remote != nil {
		s.remote.mu.Lock()
		s.remote.obsolete = append(s.remote.obsolete, s.name(path))
		s.remote.mu.Unlock()
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// discardAll removes a directory from disk now, and what the object store has below it with the next upload.
func (s *Store) discardAll(dir string) error {
	if s.remote != nil {
		s.remote.mu.Lock()
		s.remote.obsolete = append(s.remote.obsolete, s.name(dir)+"/")
		s.remote.mu.Unlock()
	}
	return os.RemoveAll(dir)
}

func (s *Store) deleteObsolete(ctx context.Context) error {
	s.remote.mu.Lock()
	names := s.remote.obsolete
	s.remote.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	var objects []string
	for _, name := range names {
		if !strings.HasSuffix(name, "/") {
			objects = append(objects, name)
			continue
		}
		below, err := s.remote.List(ctx, name)
		if err != nil {
			return fmt.Errorf("deleting old logs: %w", err)
		}
		for _, o := range below {
			objects = append(objects, o.Name)
		}
	}
	if len(objects) > 0 {
		if err := s.remote.Delete(ctx, objects); err != nil {
			return fmt.Errorf("deleting old logs: %w", err)
		}
	}
	s.remote.mu.Lock()
	defer s.remote.mu.Unlock()
	s.remote.obsolete = s.remote.obsolete[len(names):]
	return nil
}

// lostCause is why lines are missing that the disk could not hold any longer.
const lostCause = "the object store did not take them for too long, and the recorder's disk had no more room for them"

// dropOldest empties the oldest parts that wait for the object store, if they are more than the disk may hold. A part without content stays, which tells
// the cause.
func (s *Store) dropOldest(files []localFile) error {
	total := int64(0)
	for _, f := range files {
		if f.isPart() {
			total += f.size
		}
	}
	for _, f := range files {
		if total <= s.Limits.Held {
			return nil
		}
		if !f.isPart() {
			continue
		}
		freed, err := dropPart(f)
		if err != nil {
			return fmt.Errorf("making room on the recorder's disk: %w", err)
		}
		total -= freed
	}
	return nil
}

// dropPart replaces a part by one that has only its place and the cause.
func dropPart(f localFile) (freed int64, _ error) {
	content, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.size, nil
	}
	if err != nil {
		return 0, err
	}
	index, ok := readHeader(content)
	if !ok || index.Lost != "" {
		return 0, nil
	}
	index.Lost = lostCause
	if err := writePart(f.path, index, strings.NewReader("")); err != nil {
		return 0, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return 0, err
	}
	return f.size - info.Size(), nil
}
