package ui

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/record"
)

// lookInterval is how often the files of the record are looked at while somebody watches.
const lookInterval = 500 * time.Millisecond

// stream tells a browser when something has changed, by server-sent events. The event has a fingerprint of the list of jobs, and of the record,
// the logs and the usage of one job, if a job is named: the browser asks again for those that differ. A browser has one stream for each of its pages.
func (j *jobs) stream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	last := ""
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		now := j.fingerprints(r.URL.Query().Get("job"))
		if now != last {
			last = now
			if _, err := fmt.Fprintf(w, "data: %s\n\n", now); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if !j.stillMay(r) {
			return // the browser asks again, and learns why
		}
	}
}

// stillMay reports whether the person of a stream still may have it: the token may have expired, or a right may be gone.
func (j *jobs) stillMay(r *http.Request) bool {
	c := callerOf(r.Context())
	if c == nil {
		return true
	}
	user, err := c.reviews.authenticate(r.Context(), c.token)
	uid := r.URL.Query().Get("job")
	if err != nil || user == nil || uid == "" {
		return err == nil && user != nil
	}
	all, err := j.yard.Past.Summaries()
	at := indexOf(all, types.UID(uid))
	if err != nil || at < 0 {
		return false
	}
	allowed, err := c.mayRead(r.Context(), all[at])
	return err == nil && allowed
}

// fingerprints change with what they are of.
func (j *jobs) fingerprints(uid string) string {
	root := filepath.Join(j.yard.Past.Dir(), "v1")
	running := fmt.Sprint(j.cluster.Running())
	list := fingerprint(filepath.Join(root, "index")) + running
	if uid == "" || strings.ContainsAny(uid, `/\.*?[`) {
		return fmt.Sprintf(`{"jobs":%q}`, list)
	}
	about, logs, usage := "", "", ""
	if dirs, _ := filepath.Glob(filepath.Join(record.EscapeGlob(root), "jobs", "*", uid)); len(dirs) == 1 {
		about, logs = fingerprint(filepath.Join(dirs[0], "record.json"))+running, fingerprint(filepath.Join(dirs[0], "log"))
		usage = fingerprint(filepath.Join(dirs[0], "usage.ndjson"))
	}
	return fmt.Sprintf(`{"jobs":%q,"job":%q,"logs":%q,"usage":%q}`, list, about, logs, usage)
}

// fingerprint is one of the names, sizes and times of all files below a path.
func fingerprint(path string) string {
	sum := sha256.New()
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			fmt.Fprintf(sum, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}
