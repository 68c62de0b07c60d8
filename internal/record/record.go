// Package record keeps what happened to jobs when their pods, and the jobs themselves, are gone: a job's object, its attempts, pods,
// events and logs, as files below one directory, or as objects of the same names in an object store. One process writes, package recorder; any
// number of processes read, with or without a cluster.
//
//	v1/jobs/<namespace>/<uid>/record.json    the job, its attempts, pods and events; replaced as a whole
//	…/record.json.damaged                    what a record was that could not be read, where a new one was begun
//	v1/jobs/<namespace>/<uid>/log/<attempt>/<replica>/<container>.<restart>.<pod uid>/<n>.gz
//	                                         a part of a log, about 1 MiB, with its place in the log in the gzip header; never changed
//	…/<n>.log                                the last part while it grows
//	v1/jobs/<namespace>/<uid>/usage.ndjson   what the job's pods used, a line for each value
//	v1/index/<day>.ndjson                    a summary of each job created that day, one line for each change; the last one counts
//
// The directories of the jobs are the truth, and the index can be made from them again. What could not be recorded is a gap: an entry of
// the log that gives the cause.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Summary is a job in one line of a list.
type Summary struct {
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// State is the job's last state in one word, Message what it waited for or why it failed.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Replicas is how many the job has. Attempts is how many it had, counted from 1.
	Replicas    int32 `json:"replicas"`
	Attempts    int32 `json:"attempts"`
	Retries     int32 `json:"retries,omitempty"`
	Disruptions int32 `json:"disruptions,omitempty"`
	// Deleted is when the job was deleted. Unseen says that this happened while nothing recorded it, and Deleted is when it was noticed.
	Deleted time.Time `json:"deleted,omitzero"`
	Unseen  bool      `json:"unseen,omitempty"`
	// Version is the resource version of the job that was recorded. Complete says that the logs of all its pods were read to their end.
	Version  string `json:"version,omitempty"`
	Complete bool   `json:"complete,omitempty"`
	// NamespaceUID tells the namespace from a later one of the same name. It is empty on a local cluster.
	NamespaceUID types.UID `json:"namespaceUID,omitempty"`
}

// Over reports whether nothing more can happen to the job that is worth a record.
func (s Summary) Over() bool { return !s.Ended.IsZero() || !s.Deleted.IsZero() }

// Outcome is how the job ended, or its state, in one word. A job that was running when its cluster stopped goes on with the next one.
func (s Summary) Outcome(clusterRuns bool) string {
	switch {
	case !s.Ended.IsZero():
		return s.State
	case !s.Deleted.IsZero():
		return "Deleted"
	case !clusterRuns:
		return "Interrupted"
	}
	return s.State
}

// Duration is how long the job ran, or runs until now. It is not ok if that is not known.
func (s Summary) Duration(clusterRuns bool, now time.Time) (d time.Duration, ok bool) {
	switch {
	case s.Started.IsZero():
		return 0, false
	case !s.Ended.IsZero():
		return s.Ended.Sub(s.Started), true
	case !s.Deleted.IsZero() && !s.Unseen:
		return s.Deleted.Sub(s.Started), true
	case clusterRuns && s.Deleted.IsZero():
		return now.Sub(s.Started), true
	}
	return 0, false
}

// end is when the job ended, or was deleted before that.
func (s Summary) end() time.Time {
	if s.Ended.IsZero() {
		return s.Deleted
	}
	return s.Ended
}

// Record is what is known of a job.
type Record struct {
	Summary Summary `json:"summary"`
	// Updated is when the record was last written.
	Updated time.Time `json:"updated"`
	// Object is the job as the API server had it last, without secrets.
	Object json.RawMessage `json:"object"`
	// Attempts are all attempts. The job's status has only the last ten.
	Attempts []Attempt      `json:"attempts,omitempty"`
	Pods     []Pod          `json:"pods,omitempty"`
	Events   []corev1.Event `json:"events,omitempty"`
}

// Attempt is one run of the gang. Its number counts from 0.
type Attempt struct {
	Number  int32     `json:"number"`
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// Pod is a pod as it was last seen. Gone is when it was deleted. Complete says that its logs were read to their end.
type Pod struct {
	Gone     time.Time  `json:"gone,omitzero"`
	Complete bool       `json:"complete,omitempty"`
	Pod      corev1.Pod `json:"pod"`
}

// Stopped reports whether a container ended with an error because its pod was deleted: that is no failure of the replica. Times are whole seconds. In the
// second in which the deletion was requested, only the exit codes of SIGTERM and SIGKILL say so: the failure that led to it may be of the same second.
func (p *Pod) Stopped(end *corev1.ContainerStateTerminated) bool {
	if p.Pod.DeletionTimestamp == nil || end.ExitCode == 0 {
		return false
	}
	asked := p.Pod.DeletionTimestamp.Time
	if grace := p.Pod.DeletionGracePeriodSeconds; grace != nil {
		asked = asked.Add(-time.Duration(*grace) * time.Second)
	}
	killed := end.ExitCode == 128+15 || end.ExitCode == 128+9 && end.Reason != "OOMKilled"
	return end.FinishedAt.After(asked) || killed && end.FinishedAt.Time.Equal(asked)
}

// Store is a directory of records.
type Store struct {
	dir string
	// remote is the object store that has what is not in the directory, nil if there is none.
	remote *remoteState
	// Limits are those of what is written.
	Limits Limits
	// Written is what was written so far.
	Written Written
}

// Limits bound what a store keeps.
type Limits struct {
	// Log is how much of one container's log is kept: half from its beginning, half from its end.
	Log int64
	// Age is how long a job is kept after its end, Size how much all of them may take on disk.
	Age  time.Duration
	Size int64
	// Held is how much of the logs may wait on disk for the object store, if there is one.
	Held int64
}

// DefaultLimits are generous for a person's machine.
var DefaultLimits = Limits{Log: 256 << 20, Age: 30 * 24 * time.Hour, Size: 20 << 30, Held: 1 << 30}

// Open is the store in a directory, which need not exist.
func Open(dir string) *Store { return &Store{dir: dir, Limits: DefaultLimits} }

// Dir is the directory of the record in a data directory.
const Dir = "record"

// Of is the store of the local cluster in a data directory.
func Of(dataDir string) *Store { return Open(filepath.Join(dataDir, Dir)) }

// Exists reports whether anything was ever recorded.
func (s *Store) Exists() bool {
	days, err := filepath.Glob(filepath.Join(EscapeGlob(s.indexDir()), "*.ndjson"))
	if err == nil && len(days) == 0 && s.remote != nil {
		objects, err := s.list(s.indexDir())
		return err == nil && len(objects) > 0
	}
	return err == nil && len(days) > 0
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

func (s *Store) jobDir(namespace string, uid types.UID) string {
	return filepath.Join(s.dir, "v1", "jobs", namespace, string(uid))
}

func (s *Store) recordFile(namespace string, uid types.UID) string {
	return filepath.Join(s.jobDir(namespace, uid), "record.json")
}

// ErrNone says that there is no record of a job.
var ErrNone = errors.New("there is no record of this job")

// ErrDamaged says that a record cannot be understood.
var ErrDamaged = errors.New("damaged")

// Load is the record of a job.
func (s *Store) Load(namespace string, uid types.UID) (*Record, error) {
	return s.load(namespace, uid, s.read)
}

// LoadFetched is the record of a job for the process that writes: after Fetch the disk has all records that may still change. It asks nothing of an object
// store, which may take long.
func (s *Store) LoadFetched(namespace string, uid types.UID) (*Record, error) {
	return s.load(namespace, uid, os.ReadFile)
}

func (s *Store) load(namespace string, uid types.UID, read func(path string) ([]byte, error)) (*Record, error) {
	content, err := read(s.recordFile(namespace, uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of job %s: %w", uid, err)
	}
	var r Record
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, fmt.Errorf("the record in %s is %w: %w", s.recordFile(namespace, uid), ErrDamaged, err)
	}
	return &r, nil
}

// SetAside moves a damaged record out of the way of a new one. It returns its new name.
func (s *Store) SetAside(namespace string, uid types.UID) (string, error) {
	name := s.recordFile(namespace, uid)
	return name + ".damaged", os.Rename(name, name+".damaged")
}

// Save replaces the record of a job. The record of a job that is over is also safe when the machine stops.
func (s *Store) Save(r *Record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the record of job %s: %w", r.Summary.Name, err)
	}
	return replaceFile(s.recordFile(r.Summary.Namespace, r.Summary.UID), content, r.Summary.Over())
}

// replaceFile writes a file as a whole or not at all. With sync, the new file is there even if the machine stops afterwards.
func replaceFile(name string, content []byte, sync bool) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	fresh, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = fresh.Write(content); err == nil && sync {
		err = fresh.Sync()
	}
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), name)
	}
	if err != nil {
		_ = os.Remove(fresh.Name()) // on a full disk it would keep what little room there is
	} else if sync {
		err = syncDir(filepath.Dir(name))
	}
	return err
}
