package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Use is what a pod used during some seconds that ended at a time.
type Use struct {
	Time time.Time `json:"t"`
	Pod  types.UID `json:"pod"`
	// Cores is the mean number of processors that were busy, Memory the most bytes that were in use.
	Cores  float64 `json:"cores"`
	Memory int64   `json:"memory"`
	// GPU is the mean number of GPUs that were busy, GPUMemory the most bytes of their memory that were taken.
	GPU       float64 `json:"gpu,omitempty"`
	GPUMemory int64   `json:"gpuMemory,omitempty"`
}

func (s *Store) usageFile(namespace string, uid types.UID) string {
	return filepath.Join(s.jobDir(namespace, uid), "usage.ndjson")
}

// AddUsage appends to what is known of the use of a job's pods.
func (s *Store) AddUsage(namespace string, uid types.UID, uses []Use) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, use := range uses {
		if err := encoder.Encode(use); err != nil {
			return err
		}
	}
	name := s.usageFile(namespace, uid)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("recording what job %s uses: %w", uid, err)
	}
	_, err = file.Write(lines.Bytes())
	return errors.Join(err, file.Close())
}

// Usage is what the pods of a job used, in the order in which it was recorded. A line that was cut by a crash or a full disk is left out.
func (s *Store) Usage(namespace string, uid types.UID) (uses []Use, _ error) {
	content, err := s.read(s.usageFile(namespace, uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var use Use
		if json.Unmarshal(lines.Bytes(), &use) == nil {
			uses = append(uses, use)
		}
	}
	return uses, lines.Err()
}
