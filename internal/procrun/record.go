package procrun

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// sandboxFile and containerFile are what survives the process, one file each, written whole or not at all.
type sandboxFile struct {
	Config  json.RawMessage `json:"config"`
	Handler string          `json:"handler,omitempty"`
	Created int64           `json:"created"`
}

type containerFile struct {
	SandboxID string          `json:"sandboxID"`
	Config    json.RawMessage `json:"config"`
	LogPath   string          `json:"logPath,omitempty"`
	Created   int64           `json:"created"`
	Started   int64           `json:"started,omitempty"`
	Ended     *ending         `json:"ended,omitempty"`
}

func (r *Runtime) sandboxRecord(id string) string   { return r.dir("sandboxes", id+".json") }
func (r *Runtime) containerRecord(id string) string { return r.dir("containers", id+".json") }

func (r *Runtime) saveSandbox(s *sandbox) {
	save(r.sandboxRecord(s.id), s.config, func(config json.RawMessage) any {
		return sandboxFile{Config: config, Handler: s.handler, Created: s.created}
	})
}

func (r *Runtime) saveContainer(c *container) {
	c.mu.Lock()
	started, ended := c.started, c.ended
	c.mu.Unlock()
	save(r.containerRecord(c.id), c.config, func(config json.RawMessage) any {
		return containerFile{
			SandboxID: c.sandboxID, Config: config, LogPath: c.logPath, Created: c.created, Started: started, Ended: ended,
		}
	})
}

// save writes a record. A failure is logged and no more: what runs goes on running.
func save(path string, config proto.Message, record func(config json.RawMessage) any) {
	text, err := protojson.Marshal(config)
	if err == nil {
		text, err = json.Marshal(record(text))
	}
	if err == nil {
		err = WriteFile(path, text)
	}
	if err != nil {
		klog.ErrorS(err, "Recording the state of a pod", "path", path)
	}
}

// WriteFile writes a file that only its owner reads, whole or not at all, also if the machine loses power. Without the sync, the new
// name could last and the content not.
func WriteFile(path string, content []byte) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = unix.Fdatasync(int(file.Fd()))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// load reads the records of an earlier process. Nothing that they name runs any more: sandboxes are not ready, and
// containers have ended; those that were never started are forgotten. A record that cannot be read is dropped, as after a machine lost its disk.
func (r *Runtime) load() {
	each(r.dir("sandboxes"), func(id string, text []byte) error {
		var f sandboxFile
		s := &sandbox{id: id, config: &v1.PodSandboxConfig{}}
		if err := decode(text, &f, func() ([]byte, proto.Message) { return f.Config, s.config }); err != nil {
			return err
		}
		s.handler, s.created = f.Handler, f.Created
		r.sandboxes[id] = s
		return nil
	})
	each(r.dir("containers"), func(id string, text []byte) error {
		var f containerFile
		c := &container{id: id, config: &v1.ContainerConfig{}, done: make(chan struct{})}
		if err := decode(text, &f, func() ([]byte, proto.Message) { return f.Config, c.config }); err != nil {
			return err
		}
		if f.Started == 0 && f.Ended == nil {
			return os.Remove(r.containerRecord(id))
		}
		c.sandboxID, c.logPath, c.created, c.started, c.ended = f.SandboxID, f.LogPath, f.Created, f.Started, f.Ended
		c.resources = c.config.GetLinux().GetResources()
		close(c.done)
		r.containers[id] = c
		if c.ended == nil {
			end := stoppedWithRuntime(137)
			end.At = time.Now().UnixNano()
			c.ended = &end
			r.saveContainer(c)
		}
		return nil
	})
}

const stoppedMessage = "the local cluster stopped while the container ran"

// stoppedWithRuntime is the end of a container that ran when its runtime stopped or was killed. The reason is the one by which
// Kubernetes says that the container is not to blame. It has not completed either, even if it exits with 0 on SIGTERM.
func stoppedWithRuntime(code int32) ending {
	if code == 0 {
		code = 143
	}
	return ending{ExitCode: code, Reason: "ContainerStatusUnknown", Message: stoppedMessage}
}

func decode(text []byte, record any, config func() ([]byte, proto.Message)) error {
	if err := json.Unmarshal(text, record); err != nil {
		return err
	}
	raw, message := config()
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(raw, message)
}

func each(dir string, read func(id string, text []byte) error) {
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		id, isRecord := strings.CutSuffix(filepath.Base(path), ".json")
		text, err := os.ReadFile(path)
		if err == nil && isRecord {
			err = read(id, text)
		}
		if err != nil || !isRecord {
			klog.V(1).InfoS("Dropping an unreadable record", "path", path, "err", err)
			_ = os.Remove(path)
		}
	}
}
