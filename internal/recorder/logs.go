package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/api/naming"
	"github.com/trainyard/trainyard/internal/record"
)

const (
	// scanInterval is how often kubelet's directories are searched for the logs of restarted containers. A pod that changes is searched
	// at once.
	scanInterval = time.Second
	// quietTime is how long nothing must have come from a log whose container has ended until it is taken as complete.
	quietTime = 2 * time.Second
)

// logs reads the logs of the pods that are being recorded from kubelet's files:
//
//	<namespace>_<pod>_<uid>/<container>/<restart>.log
//
// They stay open, so that what kubelet deletes can still be read.
type logs struct {
	store  *record.Store
	logDir func(node string) string
	pods   map[types.UID]*podLogs
	buffer []byte
}

func newLogs(store *record.Store, logDir func(node string) string) *logs {
	return &logs{store: store, logDir: logDir, pods: map[types.UID]*podLogs{}, buffer: make([]byte, maxEntry)}
}

// logSource is where logs come from: kubelet's files, or the API server.
type logSource interface {
	// watch reads the logs of a pod from now on, which may be gone. It is called when the pod changes.
	watch(job types.UID, pod *corev1.Pod, gone bool)
	// lose records that the logs of a pod are gone which was deleted while nothing was recorded.
	lose(job types.UID, pod *corev1.Pod, now time.Time) error
	// read records what was written since the last time, or lets others do it, and returns what fails and is retried.
	read(now time.Time) error
	// settle marks the pods of a job whose logs are complete, and reports whether it changed the record.
	settle(j *job, now time.Time) (changed bool)
	// drain records what can still be read, and closes all logs: the process ends.
	drain(now time.Time) error
	// watched is how many pods' logs are not complete yet.
	watched() int
}

// podState is a pod of a job as it was last seen.
type podState struct {
	job  types.UID
	pod  *corev1.Pod
	gone bool
}

// podLogs are the logs of one pod's containers.
type podLogs struct {
	podState
	// files are the logs by the path below the pod's directory.
	files map[string]*file
	// scanned is when the directory was searched last, zero if it must be searched now.
	scanned time.Time
	// ended is when the pod was first seen to have ended.
	ended time.Time
}

// watch reads the logs of a pod from now on.
func (l *logs) watch(job types.UID, pod *corev1.Pod, gone bool) {
	p := l.pods[pod.UID]
	if p == nil {
		p = &podLogs{podState: podState{job: job}, files: map[string]*file{}}
		l.pods[pod.UID] = p
	}
	p.pod, p.gone, p.scanned = pod, p.gone || gone, time.Time{}
	_ = p.scan(l) // at once, because kubelet may be about to delete it; a failure is retried and reported by read
}

// read records what was written since the last time. A log that cannot be recorded does not stop the others.
func (l *logs) read(now time.Time) (failed error) {
	for _, p := range l.pods {
		if now.Sub(p.scanned) >= scanInterval {
			p.scanned = now
			failed = errors.Join(failed, p.scan(l))
		}
		if p.ended.IsZero() && p.over() {
			p.ended = now
		}
		for _, f := range p.files {
			failed = errors.Join(failed, f.read(now, l.buffer))
			if !f.done && f.next == nil && p.endedRun(f.log) && now.Sub(f.changed) >= quietTime {
				failed = errors.Join(failed, f.close())
			}
		}
	}
	return failed
}

// drain reads all logs to their end and closes them: no container runs any more.
func (l *logs) drain(now time.Time) (failed error) {
	for _, p := range l.pods {
		failed = errors.Join(failed, p.scan(l))
		for _, f := range p.files {
			failed = errors.Join(failed, f.finish(now, l.buffer))
		}
		if p.over() {
			p.scanned, p.ended = now, now.Add(-quietTime)
		}
	}
	return failed
}

// lose records that the logs of a pod are gone which was deleted while nothing was recorded, unless its files are still there.
func (l *logs) lose(job types.UID, pod *corev1.Pod, now time.Time) error {
	l.watch(job, pod, true)
	p := l.pods[pod.UID]
	if len(p.files) > 0 {
		return nil
	}
	return l.gaps(p, now, "the pod was deleted while the recorder did not run")
}

// gaps records why the logs of a pod's containers are missing that ran and have none.
func (l *logs) gaps(p *podLogs, now time.Time, cause string) (failed error) {
	for _, c := range p.pod.Status.ContainerStatuses {
		name := filepath.Join(c.Name, fmt.Sprintf("%d.log", c.RestartCount))
		if c.State.Running == nil && c.State.Terminated == nil || p.files[name] != nil {
			continue
		}
		w, err := l.store.WriteLog(p.pod.Namespace, p.job, p.log(c.Name, c.RestartCount))
		if err == nil {
			err = w.Write(record.GapEntry(now, cause))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		p.files[name] = &file{done: true}
	}
	return failed
}

// settle marks the pods of a job whose logs are complete, and reports whether it changed the record.
func (l *logs) settle(j *job, now time.Time) (changed bool) {
	complete := j.summary.Over()
	for uid, pod := range j.pods {
		if p := l.pods[uid]; !pod.Complete && p != nil && p.complete() && l.gaps(p, now, "the log was gone before it could be recorded") == nil {
			delete(l.pods, uid)
			pod.Complete, changed = true, true
		}
		complete = complete && pod.Complete
	}
	changed = changed || complete != j.summary.Complete
	j.summary.Complete = complete
	return changed
}

func (l *logs) watched() int { return len(l.pods) }

// complete reports whether the pod has ended and all its logs were read to their end.
func (p *podLogs) complete() bool {
	if p.ended.IsZero() || p.scanned.Sub(p.ended) < quietTime {
		return false
	}
	for _, f := range p.files {
		if !f.done {
			return false
		}
	}
	return true
}

// over reports whether no container of the pod writes any more.
func (p podState) over() bool {
	return p.gone || p.pod.Status.Phase == corev1.PodSucceeded || p.pod.Status.Phase == corev1.PodFailed
}

// endedRun reports whether a run of a container has ended.
func (p podState) endedRun(run record.Log) bool {
	if p.over() {
		return true
	}
	for _, c := range p.statuses() {
		if c.Name == run.Container {
			return c.RestartCount > run.Restart || c.RestartCount == run.Restart && c.State.Terminated != nil
		}
	}
	return false
}

// statuses are those of the pod's containers, also of its init containers.
func (p podState) statuses() []corev1.ContainerStatus {
	return slices.Concat(p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses)
}

// scan opens the logs of containers that have none open yet.
func (p *podLogs) scan(l *logs) (failed error) {
	dir := filepath.Join(l.logDir(p.pod.Spec.NodeName), strings.Join([]string{p.pod.Namespace, p.pod.Name, string(p.pod.UID)}, "_"))
	containers, err := os.ReadDir(dir)
	if err != nil {
		return nil // the pod has not begun, or its logs are gone
	}
	for _, container := range containers {
		runs, err := os.ReadDir(filepath.Join(dir, container.Name()))
		if err != nil {
			continue
		}
		for _, run := range runs {
			restart, ok := strings.CutSuffix(run.Name(), ".log")
			name := filepath.Join(container.Name(), run.Name())
			if number, err := strconv.ParseInt(restart, 10, 32); ok && err == nil && p.files[name] == nil {
				f, err := openFile(l.store, p.pod.Namespace, p.job, p.log(container.Name(), int32(number)), filepath.Join(dir, name))
				if err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				p.files[name] = f
			}
		}
	}
	return failed
}

func (p podState) log(container string, restart int32) record.Log {
	return record.Log{
		Attempt: attemptOf(p.pod), Replica: p.pod.Labels[naming.LabelReplicaType] + "-" + p.pod.Labels[naming.LabelReplicaIndex],
		Container: container, Restart: restart, Pod: p.pod.UID,
	}
}
