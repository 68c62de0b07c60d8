package pid1

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
)

// View is what a container sees of the file system: the machine's own, with mounts at their paths. Build makes it of
// a mount namespace that the calling process has for itself.
//
// A mount point that the machine lacks is never created on its disk. The nearest directory that exists is mirrored
// instead (mirror.go), and the mount point made in the mirror.
type View struct {
	Mounts   []Mount
	ReadOnly bool // everything but the mounts, /proc and /dev's devices
	Proc     bool // a fresh /proc, for a PID namespace of the container's own

	made    map[string]bool // directories that exist only in this view, where entries can be made freely
	mirrors []string        // those among them that are to be read-only in the end
}

// Mount puts Source, a file or directory of the machine, at Target. Both are absolute and clean paths.
type Mount struct {
	Source, Target    string
	ReadOnly          bool
	RecursiveReadOnly bool
}

// Build builds the view. The sources are picked up before anything is mounted, as a mount may cover another's source.
func (v *View) Build() error {
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("separating the container's mounts: %w", err)
	}
	v.made = map[string]bool{}
	mounts := slices.Clone(v.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return depth(a.Target) - depth(b.Target) })
	trees := make([]tree, len(mounts))
	for i, m := range mounts {
		var err error
		if trees[i], err = pickUp(m); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.Source, m.Target, err)
		}
	}
	if v.ReadOnly {
		if err := setReadOnly("/", true); err != nil {
			return fmt.Errorf("making the root file system read-only: %w", err)
		}
	}
	if err := v.kernelFileSystems(); err != nil {
		return err
	}
	for i, m := range mounts {
		if err := v.place(trees[i], m, mounts[:i]); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.Source, m.Target, err)
		}
	}
	for _, path := range v.mirrors {
		if err := setReadOnly(path, false); err != nil {
			return fmt.Errorf("making %s read-only: %w", path, err)
		}
	}
	return nil
}

func depth(path string) int { return strings.Count(path, "/") }

// place attaches a picked-up tree at its target, whose path is followed as the container sees it.
func (v *View) place(t tree, m Mount, earlier []Mount) error {
	defer t.close()
	at, missing, err := resolve(m.Target)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		if at, err = v.make(at, missing, t.isDir, earlier); err != nil {
			return err
		}
	} else if info, err := os.Stat(at); err != nil {
		return err
	} else if info.IsDir() != t.isDir {
		return fmt.Errorf("one is a directory and the other is a file")
	}
	// What the mount covers is out of reach.
	covered := func(path string) bool { return path == at || strings.HasPrefix(path, at+"/") }
	maps.DeleteFunc(v.made, func(path string, _ bool) bool { return covered(path) })
	v.mirrors = slices.DeleteFunc(v.mirrors, covered)
	return t.attach(at)
}

// make creates the missing part of a mount point below an existing directory and returns the whole path.
func (v *View) make(dir string, missing []string, asDir bool, volumes []Mount) (string, error) {
	path := join(dir, strings.Join(missing, "/"))
	create := func() error {
		folder := path
		if !asDir {
			folder = parent(path)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if asDir {
			return nil
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	}
	// A volume may hold mount points of others, as everywhere in Kubernetes.
	if !v.made[dir] && within(volumes, dir) && create() == nil {
		return path, nil
	}
	if !v.made[dir] {
		if err := v.mirror(dir); err != nil {
			return "", fmt.Errorf("mirroring %s: %w", dir, err)
		}
	}
	if err := create(); err != nil {
		return "", err
	}
	for folder := parent(path); folder != dir; folder = parent(folder) {
		v.made[folder] = true
	}
	if asDir {
		v.made[path] = true
	}
	return path, nil
}

func within(volumes []Mount, dir string) bool {
	return slices.ContainsFunc(volumes, func(m Mount) bool {
		return !m.ReadOnly && (dir == m.Target || strings.HasPrefix(dir, m.Target+"/"))
	})
}

// resolve follows path as far as it exists, symbolic links included, and returns what exists and what is missing.
func resolve(path string) (existing string, missing []string, err error) {
	existing, missing = "/", split(path)
	for links := 0; len(missing) > 0; {
		if missing[0] == ".." {
			existing, missing = parent(existing), missing[1:]
			continue
		}
		next := join(existing, missing[0])
		info, err := os.Lstat(next)
		switch {
		case os.IsNotExist(err):
			return existing, missing, nil
		case err != nil:
			return "", nil, err
		case info.Mode()&os.ModeSymlink == 0:
			existing, missing = next, missing[1:]
			continue
		}
		if links++; links > 40 {
			return "", nil, fmt.Errorf("too many symbolic links in %s", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if strings.HasPrefix(target, "/") {
			existing = "/"
		}
		missing = append(split(target), missing[1:]...)
	}
	return existing, nil, nil
}

// split returns the elements of a path, without those that mean nothing.
func split(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(e string) bool { return e == "" || e == "." })
}

// join, parent and from are those of path/filepath, for clean paths.
func join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func from(dir, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return join(dir, path)
}
