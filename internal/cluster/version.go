package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/version"
	kubernetes "k8s.io/component-base/version"
)

// stamp is the file of a data directory that says which version wrote it last. Kubernetes reads what an older one stored; it does not
// read what a newer one did, and would lose fields that it does not know.
type stamp struct {
	Format     int    `json:"format"`     // of our own files
	Kubernetes string `json:"kubernetes"` // of what etcd has
}

// dataFormat is raised when an older version of this program cannot read the data directory any more.
const dataFormat = 1

// checkVersion refuses a data directory of a newer version, and stamps any other.
func checkVersion(dir string) error {
	file := filepath.Join(dir, "version")
	ours := stamp{dataFormat, kubernetes.DefaultKubeBinaryVersion}
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("reading the version of the data directory: %w", err)
	default:
		if err := ours.check(content, dir); err != nil {
			return err
		}
	}
	content, err = json.Marshal(ours)
	if err != nil {
		return err
	}
	return writeFile(file, append(content, '\n'))
}

// check refuses what a newer version has written.
func (s stamp) check(content []byte, dir string) error {
	var theirs stamp
	if err := json.Unmarshal(content, &theirs); err != nil {
		return fmt.Errorf("%s has a damaged file \"version\" (%w): remove the file if this trainyard is not older than the last one that used the directory", dir, err)
	}
	stored, err := version.ParseGeneric(theirs.Kubernetes)
	newer := err == nil && version.MustParseGeneric(s.Kubernetes).LessThan(stored)
	if newer || theirs.Format > s.Format {
		return fmt.Errorf("%s was used by a newer trainyard, with Kubernetes %s, and this one has Kubernetes %s: use the newer one, or name another directory with --data-dir",
			dir, theirs.Kubernetes, s.Kubernetes)
	}
	return nil
}
